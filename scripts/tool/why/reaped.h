/*
 * Finds which process ended a wait for a child process (waitpid and the like), in a merged trace
 * that has both: the child whose main thread ended last during the wait. The wait goes on after
 * that thread's last event, until the kernel has ended the child: its library writes its trace
 * meanwhile, destructors run, its memory is given back. A wait that begins after that event, and
 * goes on for much longer, was for a child that is not traced. If waitpid had nothing to wait for,
 * the wait just before was for the child: for the signal that its end sends, or for the end of its
 * output.
 */
#pragma once

#include "graph.h"

/* Finds such waits and adds them to gt_lane.handed, where gt_cursor_* uses them. */
void gt_reaped_find(struct gt_graph *graph);

/* Whether both are threads of a merged trace, of different processes. */
bool gt_is_of_other_process(const struct gt_thread_state *a, const struct gt_thread_state *b);
