/* Whether CPUs were what a run lacked, and how many it had. */
#ifndef GT_WHY_CPUS_H
#define GT_WHY_CPUS_H

#include "graph.h"

enum { GT_USUAL_WAKE_NS = 50000 }; /* from being woken to running, where there is a CPU: at most */

/*
 * How many of the threads had a CPU while others had none, by the kernel's record, or, *counted,
 * while any could run, by the account. 0: too few were delayed for it to matter.
 */
double gt_measure_cpus(const struct gt_graph *graph, uint64_t from, uint64_t to, bool *counted);

/* How much of its running a thread had a CPU, by its account. */
double gt_cpu_share(const struct gt_thread_state *t);

#endif
