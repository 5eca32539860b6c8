/*
 * Thundering herds whose threads do something before they wait again: many are woken at a time,
 * each takes the lock in turn, and most of them go back to wait with nothing to show for it.
 */
#pragma once

#include "graph.h"

/* The wake-ups from the waits at one place. */
struct gt_herd {
    uint64_t wakes; /* after which the thread came back to wait there */
    uint64_t vain; /* wakes after which the thread woke no other one, and held the lock all along */
    uint64_t queued_ns; /* how long woken threads waited for the lock */
    uint32_t lock;      /* GT_NOBODY: they did not wait for one */
};

struct gt_herd gt_herd_of(const struct gt_graph *graph, uint32_t spot);
