/*
 * CPU samples, where nobody else takes them (encoder/watch.h): a timer of each thread counts its
 * CPU time, and its signal's handler takes the stack of what was interrupted. A thread begins with
 * that, and so does a program, which has one thread and no other to watch it.
 *
 * No call of the program is interrupted by that. Since Linux 5.9 such a timer that is due marks its
 * thread (CONFIG_POSIX_CPU_TIMERS_TASK_WORK), and the signal is sent by that thread itself, on its
 * way back from the kernel: in a system call there is none pending, and one that waits is not
 * woken. Older kernels send it from the clock's interrupt; there we take no samples.
 */
#ifndef GT_SAMPLER_H
#define GT_SAMPLER_H

#include "encoder/samples.h"
#include "encoder/watch.h"

struct gt_thread;

struct gt_sampler {
    struct gt_sample_ring *ring; /* of this struct's threads, one after the other; NULL: none yet */
    int timer;
    /* Whose timer it is and, in the last bits, why it stands; 0: there is none. */
    _Atomic uint64_t state;
    struct gt_sampler *next; /* in the list of all that have a ring */
};

/* In the constructor, before the first thread is followed: what GOTRACE_CPU_HZ asks for. */
void gt_sampler_init(void);

/* Samples in a second of CPU time; 0: there are none. */
uint32_t gt_sampler_hz(void);

/* See encoder/watch.h, for both. By the drain side. */
gt_walk_fn gt_sampler_walk;
gt_by_copy_fn gt_sampler_by_copy;

/* t's thread, which calls, begins and ends. */
void gt_sampler_thread_begin(struct gt_thread *t);
void gt_sampler_thread_end(struct gt_thread *t);

/* For all threads, from any: no timer of ours is left. */
void gt_sampler_end(void);

/* In a forked child, which has none of the parent's timers. */
void gt_sampler_after_fork(void);

#endif
