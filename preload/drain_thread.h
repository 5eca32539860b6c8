/* How the thread of the drain side (encoder/drain.h) is one of a program that never meets it. */
#ifndef GT_DRAIN_THREAD_H
#define GT_DRAIN_THREAD_H

#include <stdbool.h>

/* In the constructor, when the program has had no chance to move its first thread. */
void gt_drain_thread_init(void);

/* Makes it, once in a process. false: said on stderr why not; the drain side is without one. */
bool gt_drain_thread_start(void);

/* For the thread itself: whether there is no other one. */
bool gt_drain_thread_is_last(void);

/* After gt_drain_finish: returns when neither libc nor the kernel knows of it, or after 1 s. */
void gt_drain_thread_await_end(void);

void gt_drain_thread_after_fork(void);

#endif
