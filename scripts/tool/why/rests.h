/*
 * Waits that no thread is known to have ended: for input, a signal, a cancellation. Another thread
 * may have ended such a wait by a call without an event (a close, a short write). The clue is the
 * moment at which that thread began to wait for this one.
 */
#pragma once

#include "graph.h"

/* The last such wait of the thread that began before `at`. False: there was none lately. */
bool gt_rest_before(const struct gt_graph *graph, uint32_t thread, uint64_t at,
                    struct gt_lane_step *rest);

/*
 * Whether the step is such a wait, and the asker ended it by something that it sent just before it
 * began to wait, at `at`. The step may end up to 1/`part` of its length before or after `at`.
 */
bool gt_rest_was_asked(const struct gt_graph *graph, uint32_t asker, uint64_t at,
                       const struct gt_lane_step *rest, uint64_t part);
