/*
 * The thread that runs the drain side (encoder/drain.h): how it is one of the program's threads
 * without the program meeting it.
 */
#ifndef GT_DRAIN_THREAD_H
#define GT_DRAIN_THREAD_H

#include <stdbool.h>

/* In the constructor, when the program has had no chance to move its first thread. */
void gt_drain_thread_init(void);

/*
 * Makes it, once in a process; or says on stderr why not, and the drain side is without one.
 * Whether it was made.
 */
bool gt_drain_thread_start(void);

/* For the thread itself: whether there is no other one. */
bool gt_drain_thread_is_last(void);

/* After gt_drain_finish: returns when neither libc nor the kernel knows of it, or after 1 s. */
void gt_drain_thread_await_end(void);

void gt_drain_thread_after_fork(void);

#endif
