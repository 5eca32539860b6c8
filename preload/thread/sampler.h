/*
 * CPU samples by timers, for threads that the drain thread does not sample (encoder/cpu/watch.h). A
 * timer counts the CPU time of each thread, and the handler of the timer's signal captures the
 * interrupted stack. Each thread begins with such a timer; a program with a single thread keeps it,
 * since no other thread can watch it.
 *
 * The signal interrupts no system call of the program. Since Linux 5.9 an expired timer only marks
 * its thread (CONFIG_POSIX_CPU_TIMERS_TASK_WORK). The thread sends the signal to itself on its way
 * back from the kernel. So no signal is pending during a system call, and a blocked thread is not
 * woken. Older kernels send the signal from the clock's interrupt: we take no samples there.
 */
#pragma once

#include "encoder/cpu/copies.h"
#include "encoder/cpu/watch.h"

struct gt_thread;

/* Starts the sampling that GOTRACE_CPU_HZ asks for. Called in the constructor, before the first
 * thread is followed. */
void gt_sampler_init(void);

/*
 * Prepares the process for samples, once: takes the signal, and keeps it from interrupting handlers
 * of the program. Returns NULL, or the missing condition as the end of "there are only samples
 * where …". Called by the constructor or the drain side.
 */
const char *gt_sampler_prepare(void);

/*
 * Sets the samples in a second of CPU time for all present and future threads; 0: none. Called by
 * the drain side, after gt_sampler_prepare.
 */
void gt_sampler_switch(uint32_t hz);

/* The number of samples in a second of CPU time; 0: none. */
uint32_t gt_sampler_hz(void);

/* See encoder/cpu/copies.h and encoder/cpu/watch.h. Drain side. */
gt_walk_fn gt_sampler_walk;
gt_by_copy_fn gt_sampler_by_copy;

/* Begin and end the sampling of t's thread, the caller. fresh: the thread has run no code of the
 * program yet. */
void gt_sampler_thread_begin(struct gt_thread *t, bool fresh);
void gt_sampler_thread_end(struct gt_thread *t);

/* Keeps sampling from being switched on: a seccomp filter of the program forbids its system calls.
 */
void gt_sampler_forbid(void);

/* gt_sampler_forbid, and deletes the timers of all threads. Any thread. */
void gt_sampler_end(void);

/* Stops all timers: threads may set signal stacks without our seeing it. A thread's timer runs
 * again after its next sigaltstack(2) that we see. */
void gt_sampler_doubt_stacks(void);

/* Called in a forked child, which inherits no timers: samples as GOTRACE_CPU_HZ says. */
void gt_sampler_after_fork(void);
