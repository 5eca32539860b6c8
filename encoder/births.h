/*
 * Switches of threads from their first moment, for watch.h. Our thread meets a new thread up to
 * 20 ms late, or later where CPUs are scarce. The kernel need not meet it: each thread that a given
 * one makes, and each that those make in turn, inherits its event. Such an event belongs to one
 * CPU, so there is a ring for each CPU, for all threads together.
 *
 * A thread costs its maker a microsecond for each CPU: machines with more than BIRTHS_CPUS have no
 * births. Nor have kernels before 5.13, which would let forked children inherit, too. Drain side
 * only.
 */
#ifndef GT_BIRTHS_H
#define GT_BIRTHS_H

#include "perf.h"

/* The threads that thread tid makes from now on inherit. */
void gt_births_of(uint32_t tid);

/* Whether any thread's do. */
bool gt_births_are_on(void);

/*
 * Tells the switches since, in the order of time: of those threads, and of the given ones. Some of
 * the last moments are left for the next time. Returns how full the fullest ring was.
 */
typedef void gt_births_fn(const struct gt_perf_switch *s);
double gt_births_read(gt_births_fn *fn);

/* A recording has ended. */
void gt_births_close(void);

/* In a forked child: rings and descriptors are the parent's. */
void gt_births_after_fork(void);

#endif
