/*
 * The one voice of the tracer: a line `gotrace: …` on the program's standard error. Not for signal
 * handlers. A program that runs a child may read the child's standard error, and take any line
 * there for a failure. So a child only reports losses, unless GOTRACE_QUIET=0 asks for all lines.
 */
#pragma once

#include <stdbool.h>

enum gt_log_quiet { GT_QUIET_CHILDREN, GT_QUIET_ALL, GT_QUIET_NOBODY };
extern enum gt_log_quiet gt_log_quiet; /* GOTRACE_QUIET: unset, 1, 0 */

/* Marks this process as a child that the user did not start: at its start, or after a fork. */
void gt_log_be_child(void);

/*
 * Remembers which file standard error is. Called before the program runs. Later lines go to that
 * file or nowhere: the program may close the descriptor, and its number may then belong to another
 * file.
 */
void gt_log_init(void);

/* The calling thread has a descriptor table of its own, without standard error. */
void gt_log_apart(void);

/* A seccomp filter of the program forbids the search for a thread that has standard error. */
void gt_log_forbid_search(void);

/*
 * Whether a person reads the lines, and so wants to know more than that nothing is lost: standard
 * error is a terminal, or GOTRACE_QUIET=0 asks for all lines.
 */
bool gt_log_is_read(void);

/*
 * Duplicates standard error, which the program is about to close, for lines until gt_log_let_go.
 * The duplicate has a high number, and exec closes it. False: there is nothing to keep. Not for the
 * thread of gt_log_apart; gt_log_let_go does nothing there.
 */
bool gt_log_keep(void);
void gt_log_let_go(void);

/*
 * Reports a loss, or something that the user asked for by name (GOTRACE_HANG). True: the line was
 * written, or GOTRACE_QUIET=1 suppressed it.
 */
bool gt_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A longer line is cut. With "gotrace: " and the end of the line. */
enum { GT_LOG_LINE = 1024 };

/* Reports something that is no loss. Returns what gt_log does. A child stays silent. */
bool gt_log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
