/*
 * Signals that the tracer takes for itself. The program may set, ask for and get them as ever; only
 * that it blocks one has no effect.
 */
#ifndef GT_SIGNALS_H
#define GT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Constructor: what GOTRACE_SIGNAL and GOTRACE_RING take. Before the others below. */
void gt_signals_init(void);

/*
 * The program's handlers on a signal stack have this signal blocked, unseen: those that it has, and
 * those that it sets from here on. The constructor or the drain side.
 */
void gt_signals_keep_out(int number);

/* In a forked child: nobody holds a lock, nobody dies. */
void gt_signals_after_fork(void);

#endif
