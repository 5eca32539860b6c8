/*
 * Finds which thread started each process of a merged trace, where the trace does not say: it names
 * the thread that called fork, but not one that called posix_spawn, vfork, system or the like.
 */
#pragma once

#include "graph.h"

/* Sets gt_lane.creator and gt_lane.created of all threads. No cursor may be open. */
void gt_spawned_find(struct gt_graph *graph);
