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

/* The highest real-time signal that has the default action now; 0: none. */
int gt_signals_find(void);

/* From now on `handler` gets the signal, with all others blocked. Once, in the constructor. */
bool gt_signals_take(int number, void (*handler)(int, siginfo_t *, void *));

/* In a forked child: nobody holds a lock, nobody dies. */
void gt_signals_after_fork(void);

/* In that handler: this one was not for us. Does with it what the program wants. */
void gt_signals_forward(int number, siginfo_t *info, void *context);

#endif
