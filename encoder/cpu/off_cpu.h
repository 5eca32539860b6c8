/*
 * Where a thread was when it lost its CPU: for waits that no hook sees (sched.h). The kernel
 * copies the thread's stack at every loss of its CPU, or at every n-th, if this user may take
 * samples in the kernel. The copies have a ring of their own: a copy that finds no room there is
 * not a gap in the record of when the thread had a CPU. Drain side only.
 */
#pragma once

#include "perf.h"

#include "encoder/thread/stacks.h"

struct gt_off_cpu {
    struct gt_perf perf; /* bytes 0: no ring is open */
};

/* Copies the stack of thread tid from here on at each `every`-th loss of its CPU; 0: never. */
void gt_off_cpu_want(struct gt_off_cpu *d, uint32_t tid, uint32_t every);

/* Calls fn for each new copy. ns: the time in struct gt_perf_switch, or a moment earlier. */
typedef void gt_off_cpu_fn(void *arg, uint64_t ns, struct gt_stack *stack);
void gt_off_cpu_read(struct gt_off_cpu *d, gt_off_cpu_fn *fn, void *arg);

/* A recording begins: tries again where the kernel has refused before. */
void gt_off_cpu_open(void);
