/*
 * Numbers of threads, Ps, goroutines and tasks in the written trace: those of the source, or, when
 * several traces are merged, numbers that are unique among all traces. Also rewrites the texts that
 * contain such numbers.
 */
#pragma once

#include "rewriting_state.h"

/*
 * When merging, each call returns a new number, which the caller keeps; only tasks are looked up.
 * A thread keeps the kernel's number if no other trace has it.
 */
uint64_t gt_number_of_thread(uint64_t thread);
uint64_t gt_number_of_p(uint64_t p);
uint64_t gt_number_of_g(uint64_t g);
uint64_t gt_number_of_task(uint64_t task);

/*
 * "process/thread", where thread is its label, else its start routine. Without a process name: the
 * goroutine's own label.
 */
const char *gt_name_of(const struct gt_g_row *g);

/* A log about a lock, with the numbers and names of the written trace; other logs unchanged. */
struct gt_log_line gt_retell_log(const struct gt_log_line *log);

/*
 * A text of a trace's end (encoder/thread/held.h), with the written trace's numbers and times.
 * Valid for ever; NULL: another text. *used: how many of trace->blocked were written so far.
 */
const char *gt_retell_at_end(const char *text, const struct gt_trace *trace, size_t *used);
