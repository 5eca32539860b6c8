/*
 * Thundering herds: many threads are woken at a time from the wait at a condition variable, each
 * gets the mutex in turn, and most of them find no work and wait again. A thread that waits again
 * soon may still have found some, and been quick. So only a thread that has kept the mutex counts.
 */
#pragma once

#include "graph.h"

/* The wake-ups from the waits at one place. */
struct gt_herd {
    uint64_t wakes;     /* after which the thread came back to wait there */
    uint64_t vain;      /* wakes after which the thread woke no other one, and kept the mutex */
    uint64_t queued_ns; /* how long woken threads waited for the lock */
    uint32_t lock;      /* GT_NOBODY: they did not wait for one */
};

struct gt_herd gt_herd_of(const struct gt_graph *graph, uint32_t spot);
