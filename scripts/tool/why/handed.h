/*
 * Infers which thread ended waits for descriptors: pipes, sockets, eventfds, file locks. No event
 * records that. The threads of one routine are taken to be the wakers of a place by two signs: they
 * nearly always did something just when a wait there was over, and hardly ever in the middle of
 * one.
 */
#pragma once

#include "graph.h"

/* Finds these wakers and stores them in the lanes (gt_lane.handed), where gt_cursor_* uses them. */
void gt_handed_find(struct gt_graph *graph);
