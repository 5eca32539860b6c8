/*
 * Signals whose default action ends the process, where a recording is to be completed, or a flight
 * recorder has something to save. Our handler stands where the program has the default action, and
 * only there; it writes the file, and then the default action takes place as if we had not been:
 * same status, same core, the fault at the same instruction. The program reads and sets its actions
 * as ever.
 */
#ifndef GT_FATAL_H
#define GT_FATAL_H

#include <signal.h>
#include <stdbool.h>

/* Constructor, if there is a flight recorder; else where a recording begins. */
void gt_fatal_init(void);

/* The default actions for good, in children too: a filter is coming that our handler cannot live
 * with. */
void gt_fatal_forbid(void);

/* Whether that is our handler, which to the program is SIG_DFL. */
bool gt_fatal_is_ours(sighandler_t handler);

/* In a forked child: its parent may be dying. */
void gt_fatal_after_fork(void);

/* Whether the program's sigaction for this signal goes to gt_fatal_action. */
bool gt_fatal_watches(int number);

/* sigaction(2), by which the program sees the default action where our handler stands. */
int gt_fatal_action(int number, const struct sigaction *action, struct sigaction *old);

#endif
