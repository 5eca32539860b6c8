/*
 * Writers that wait for a read-write lock while readers come back to it. The trace has no holds of
 * readers, but where they release the lock, and what they do there and elsewhere.
 */
#pragma once

#include "graph.h"

/* Waits of writers for one lock, during which the reader that let them in came back to it. */
struct gt_starved {
    uint32_t lock; /* GT_NOBODY: there are none */
    uint32_t spot; /* of the longest wait */
    uint64_t waits, ns, rounds, longest, longest_at;
};

/* Of the lock with the longest sum. */
struct gt_starved gt_starved_find(const struct gt_graph *graph, uint64_t from, uint64_t to);
