/*
 * Where a thread was when it lost its CPU: for waits that no hook sees (sched.h). The kernel copies
 * its stack at each time, or each so manieth, where this user may sample what is in the kernel. A
 * ring of its own: what finds no room there is no gap in when the thread had a CPU. Drain side
 * only.
 */
#ifndef GT_OFF_CPU_H
#define GT_OFF_CPU_H

#include "copies.h"
#include "format.h"
#include "stacks.h"

struct gt_off_cpu {
    struct gt_perf perf; /* bytes 0: there is none */
};

/* Of thread tid, from here on: every such loss of its CPU; 0: none. */
void gt_off_cpu_want(struct gt_off_cpu *d, uint32_t tid, uint32_t every);

/* Tells those since. ns: as struct gt_perf_switch has it, or a moment before that one's. */
typedef void gt_off_cpu_fn(void *arg, uint64_t ns, struct gt_stack *stack);
void gt_off_cpu_read(struct gt_off_cpu *d, gt_off_cpu_fn *fn, void *arg);

/* A recording begins: the kernel may allow it by now. */
void gt_off_cpu_open(void);

#endif
