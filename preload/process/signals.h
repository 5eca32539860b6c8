/*
 * The signals that the tracer uses itself. The program may still set their actions and query them;
 * only blocking such a signal has no effect.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Takes the signals that GOTRACE_SIGNAL and GOTRACE_RING need. Called in the constructor, before
 * the functions below. */
void gt_signals_init(void);

/*
 * Blocks the signal while a handler of the program runs on a signal stack, for present and future
 * handlers, without showing this to the program. Called by the constructor or the drain side.
 */
void gt_signals_keep_out(int number);

/* Called in a forked child: frees the lock, whose holder is not in the child. */
void gt_signals_after_fork(void);
