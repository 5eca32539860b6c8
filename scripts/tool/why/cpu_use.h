/* Whether threads lacked CPUs, how many CPUs the run had, and which threads used them meanwhile. */
#pragma once

#include "graph.h"

enum { GT_USUAL_WAKE_NS = 50000 }; /* usual longest time from wake-up to running on a free CPU */

/*
 * Number of CPUs that the threads had, on average, while others were runnable without a CPU. The
 * figure comes from the kernel's record of context switches. Without that record it is the average
 * over all time in which any thread could run, by the CPU accounts. 0: run-queue delays were too
 * short to matter, or other processes had the CPUs.
 */
double gt_measure_cpus(const struct gt_graph *graph, uint64_t from, uint64_t to);

/*
 * Of the time in which a thread ran by its events, the part on a CPU, by its CPU account; and the
 * part in which it waited in no call that is known, such as for a lock inside libc, where that
 * matters. The rest is the part in a run queue. ran 1: the kernel's record of context switches has
 * told all that for each moment, or there is no account.
 */
struct gt_cpu_parts {
    double ran, unseen;
};
struct gt_cpu_parts gt_cpu_parts_of(const struct gt_graph *graph, uint32_t thread);

/*
 * Sets gt_lane.ran_least: of the threads that compute with an interpreter's lock, one runs at a
 * time. Together they were on a CPU for a part of the time in which any of them ran by its events,
 * which is more than its own part if a thread that gave the lock up lost its CPU then. For
 * gt_cpu_parts_of.
 */
void gt_cpu_use_find(struct gt_graph *graph);

/*
 * Run-queue delays: times in which threads could run and had no CPU, in any order.
 * Zero-initialised.
 */
struct gt_delays {
    uint64_t ns;
    struct gt_delay {
        uint64_t from, to;
        uint32_t p; /* the CPU that the thread ran on afterwards, or GT_NOBODY */
    } * at;
    size_t n;
};
void gt_delays_add(struct gt_delays *delays, uint64_t from, uint64_t to, uint32_t p);

/* What the CPUs of these delays did meanwhile: ns for threads of the process, and for others. */
struct gt_cpu_users {
    uint64_t ours, others;
    uint32_t thread; /* the thread of the process that ran longest there, or GT_NOBODY */
};
struct gt_cpu_users gt_delays_users(const struct gt_delays *delays, const struct gt_graph *graph);
