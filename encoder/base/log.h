/*
 * The one voice of the tracer: a line `gotrace: …` on the program's standard error. Not from signal
 * handlers. Silent while gt_log_quiet.
 */
#ifndef GT_LOG_H
#define GT_LOG_H

#include <stdbool.h>

extern bool gt_log_quiet;

/*
 * Remembers which file standard error is. Later lines go there or nowhere: the program may have
 * closed it and something else may have its number. Before the program.
 */
void gt_log_init(void);

/* The calling thread has a descriptor table of its own, without standard error. */
void gt_log_apart(void);

/* A filter of the program's does not allow what it takes to look for a thread that has it. */
void gt_log_forbid_search(void);

/*
 * The program is about to close its standard error: a duplicate is kept, for lines until
 * gt_log_let_go; its number is high, and exec closes it. False: there is nothing to keep. Not by
 * the thread of gt_log_apart, which lets nothing go.
 */
bool gt_log_keep(void);
void gt_log_let_go(void);

/* Whether the line was written. */
bool gt_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
