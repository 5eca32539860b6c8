/* How evenly the threads of OpenMP regions divide the work among them. */
#pragma once

#include "graph.h"

/* The regions that one call made. */
struct gt_omp_shares {
    const struct gt_callers *call;      /* NULL: no region is uneven */
    uint32_t regions, threads, busiest; /* threads: of the largest team */
    uint64_t busiest_ns;                /* work of `busiest` in all these regions */
    uint64_t mean_ns, over_ns; /* work of a thread on average; what the busiest had above it */
    uint64_t ns;               /* length of all these regions */
    uint64_t at;               /* when the region with the greatest difference began */
};

/* Of the interval's regions, those whose threads work most unevenly. */
struct gt_omp_shares gt_omp_shares_find(const struct gt_graph *graph, uint64_t from, uint64_t to);
