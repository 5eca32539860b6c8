/*
 * Two facts about the ends of threads that no event records. The first: a thread that works in
 * rounds or waits for input until it must stop, and is joined then, held nobody up with what it did
 * before. The second: a thread that has ended before it is joined causes no wait, but its creator
 * needs its result to go on.
 */
#pragma once

#include "graph.h"

/* Finds such threads and sets gt_lane.stopped and gt_lane.joined. */
void gt_joins_find(struct gt_graph *graph);

/* The threads of which gt_lane.alike says that they were told to stop. */
size_t gt_joins_alike(const struct gt_graph *graph, uint32_t *first);

/*
 * Whether the thread's step waits for the end of another thread, or for the last post of a child,
 * as a future's get does. A wait for a lock is no such wait.
 */
bool gt_joins_is_join(const struct gt_graph *graph, uint32_t thread,
                      const struct gt_lane_step *step);

/*
 * Whether the step waits for a thread that went on until it had to stop: for its end, or
 * for a lock that it holds. Only what that thread did during the wait counts, nothing it did
 * before.
 */
bool gt_joins_is_rest(const struct gt_graph *graph, const struct gt_lane_step *step);
