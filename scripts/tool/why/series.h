/*
 * Threads that are made one at a time: their creator waits for the end of each before it makes the
 * next one, as a loop does that starts a future and gets its result.
 */
#pragma once

#include "survey.h"

struct gt_series {
    uint32_t threads, maker;  /* threads: 0: they are not made so */
    uint32_t waits;           /* threads that had not ended when the creator came to their join */
    uint64_t longest;         /* ns, of one thread's life without its run-queue delays */
    uint64_t computes;        /* ns that all of them ran */
    struct gt_lane_step wait; /* the creator's longest wait for one of them */
};

/* Looks whether all threads of the pool are made so. */
struct gt_series gt_series_find(const struct gt_graph *graph, const struct gt_survey *survey,
                                uint32_t pool);
