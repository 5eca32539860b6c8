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
    /* Of this struct's threads, one after the other; NULL: none yet. */
    _Atomic(struct gt_sample_ring *) ring;
    _Atomic uint64_t state; /* 0: no thread that is traced has it; else see sampler.c */
};

/* In the constructor, before the first thread is followed: what GOTRACE_CPU_HZ asks for. */
void gt_sampler_init(void);

/*
 * What samples need of the process, once: its signal, and that handlers of the program's are not
 * interrupted by that. NULL; or why there can be none, as "there are only samples where …". The
 * constructor or the drain side.
 */
const char *gt_sampler_prepare(void);

/*
 * From here on so many samples in a second of CPU time; 0: none. For all threads, those that there
 * are and those to come. Prepared; the drain side.
 */
void gt_sampler_switch(uint32_t hz);

/* Samples in a second of CPU time; 0: there are none. */
uint32_t gt_sampler_hz(void);

/* See encoder/copies.h, and encoder/watch.h. By the drain side. */
gt_walk_fn gt_sampler_walk;
gt_by_copy_fn gt_sampler_by_copy;

/* t's thread, which calls, begins and ends. fresh: it has just been made, and done nothing. */
void gt_sampler_thread_begin(struct gt_thread *t, bool fresh);
void gt_sampler_thread_end(struct gt_thread *t);

/* Sampling cannot be switched on any more: a filter of the program's kills for what that takes. */
void gt_sampler_forbid(void);

/* That, and for all threads, from any: no timer of ours is left. */
void gt_sampler_end(void);

/* Threads may have set signal stacks that were not seen: until they do again, no timer runs. */
void gt_sampler_doubt_stacks(void);

/* In a forked child, which has none of the parent's timers, and samples as it would have from its
 * start. */
void gt_sampler_after_fork(void);

#endif
