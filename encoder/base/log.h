/*
 * The one voice of the tracer: a line `gotrace: …` on the program's standard error. Not from signal
 * handlers. What runs a child may read its standard error, and take any line there for a failure:
 * a child says only what is lost, unless everybody is to speak.
 */
#ifndef GT_LOG_H
#define GT_LOG_H

#include <stdbool.h>

enum gt_log_quiet { GT_QUIET_CHILDREN, GT_QUIET_ALL, GT_QUIET_NOBODY };
extern enum gt_log_quiet gt_log_quiet; /* GOTRACE_QUIET: unset, 1, 0 */

/* This process is not the one that the user started. At its start, or after a fork. */
void gt_log_be_child(void);

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

/*
 * Something is lost, or was asked for by name (GOTRACE_HANG). Whether the line was written, or
 * nobody wants it.
 */
bool gt_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Nothing is lost. Likewise; a child keeps it to itself. */
bool gt_log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
