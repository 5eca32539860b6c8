/*
 * Finds which process ended a wait for a child process (waitpid and the like), in a merged trace
 * that has both: the child whose main thread ended last during the wait. The wait goes on after
 * that thread's last event, until the kernel has ended the child: its library writes its trace
 * meanwhile, destructors run, its memory is given back.
 */
#pragma once

#include "graph.h"

/* Finds such waits and adds them to gt_lane.handed, where gt_cursor_* uses them. */
void gt_reaped_find(struct gt_graph *graph);
