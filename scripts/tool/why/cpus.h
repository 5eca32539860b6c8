/* Whether CPUs were what a run lacked, how many it had, and who had them meanwhile. */
#ifndef GT_WHY_CPUS_H
#define GT_WHY_CPUS_H

#include "graph.h"

enum { GT_USUAL_WAKE_NS = 50000 }; /* from being woken to running, where there is a CPU: at most */

/*
 * How many of the threads had a CPU while others had none, by the kernel's record, or, *counted,
 * while any could run, by the account. 0: too few were delayed for it to matter, or other processes
 * had those CPUs.
 */
double gt_measure_cpus(const struct gt_graph *graph, uint64_t from, uint64_t to, bool *counted);

/* How much of its running a thread had a CPU, by its account. */
double gt_cpu_share(const struct gt_thread_state *t);

/* Times in which threads could run and had no CPU, in any order. Zeros to begin with. */
struct gt_delays {
    uint64_t ns;
    struct gt_delay {
        uint64_t from, to;
        uint32_t p; /* that the thread had then, or GT_NOBODY */
    } * at;
    size_t n, room;
};
void gt_delays_add(struct gt_delays *delays, uint64_t from, uint64_t to, uint32_t p);

/* For how much of that, in ns, those CPUs ran threads of the process, or something else. */
struct gt_cpu_users {
    uint64_t ours, others;
    uint32_t thread; /* of ours, which had them longest; or GT_NOBODY */
};
struct gt_cpu_users gt_delays_users(const struct gt_delays *delays, const struct gt_graph *graph);

#endif
