/*
 * Infers which thread ended waits for connections (accept): the thread of the trace that connected
 * just then. No event says to which socket a thread connects. A short connect has no event at all.
 */
#pragma once

#include "graph.h"

/* Stores these threads in the lanes, as handed.h does, for waits of which nothing is known yet. */
void gt_connected_find(struct gt_graph *graph);
