/*
 * What threads, Ps, goroutines and tasks of a trace are called in the one that is written: as they
 * are; or, where several traces are put together, so that each is told from all others. And texts
 * in which they stand.
 */
#ifndef GT_NUMBERS_H
#define GT_NUMBERS_H

#include "rewriting_state.h"

/* Kept by who asks, but for tasks. A thread keeps the kernel's number, if no other trace has it. */
uint64_t gt_number_of_thread(uint64_t thread);
uint64_t gt_number_of_p(uint64_t p);
uint64_t gt_number_of_g(uint64_t g);
uint64_t gt_number_of_task(uint64_t task);

/* "process/thread": by what it has given itself, or where it began. Else its own name. */
const char *gt_name_of(const struct gt_g_row *g);

/* A log about a lock, with other numbers and names in it; any other one as it is. */
struct gt_log_line gt_retell_log(const struct gt_log_line *log);

/*
 * What is told at the end of a trace (encoder/held.h), with times of what is written. Valid for
 * ever; NULL: it is nothing of that. blocked: those that were read, of which *used are told.
 */
const char *gt_retell_at_end(const char *text, const struct gt_trace *trace, size_t *used);

#endif
