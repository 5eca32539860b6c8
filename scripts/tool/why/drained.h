/*
 * Pools whose threads never wait for work, as their queue was full before they began. No event
 * shows such a queue, but its threads end together though they did unequally many pieces.
 */
#pragma once

#include "survey.h"

/* How often each thread of the pool was in the call that they are in longest: once a piece. */
struct gt_drained {
    uint64_t least, most; /* of one thread. 0: nothing tells that they share one queue */
};

struct gt_drained gt_drained_find(const struct gt_graph *graph, const struct gt_survey *survey,
                                  uint32_t pool);
