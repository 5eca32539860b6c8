/*
 * Who ended waits for descriptors: pipes, sockets, eventfds, file locks. No event says so. Where
 * threads of one kind nearly always did something just when the waits of a place were over, and
 * hardly ever meanwhile, it was they.
 */
#ifndef GT_WHY_HANDED_H
#define GT_WHY_HANDED_H

#include "graph.h"

/* Sets what lanes say of that, for gt_cursor_*. */
void gt_handed_find(struct gt_graph *graph);

#endif
