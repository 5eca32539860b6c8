/*
 * What is not told of the ends of threads. One that goes its rounds until it is told to stop, and
 * is joined then: what it did before held nobody up. And one that has ended when it is joined, for
 * which nobody waits: its maker does not go on without it all the same.
 */
#ifndef GT_WHY_JOINS_H
#define GT_WHY_JOINS_H

#include "graph.h"

/* Sets what lanes say of that. */
void gt_joins_find(struct gt_graph *graph);

/*
 * Whether the step waits for such a thread, to end or to give up a lock: for what it did in that
 * time, and for nothing that it did before.
 */
bool gt_joins_is_rest(const struct gt_graph *graph, const struct gt_step *step);

#endif
