/*
 * Finds waits for a lock that events tell as run-queue delays, or without the thread that ended
 * them. A thread that another thread woke does not go on as long as other threads hold the lock
 * that it needs for that: the mutex of its condition variable, or the lock that it waited for, if a
 * third thread took that first. So is the rest of a wait for a condition variable that goes on
 * after the signal, until a holder releases the mutex.
 *
 * A wait for a lock on a file is a call in the trace, and only the hold that follows tells which
 * lock it was for. The thread that gave that lock up last, just before, ended the wait.
 */
#pragma once

#include "graph.h"

/* Finds such waits and adds them to gt_lane.handed, where gt_cursor_* uses them. */
void gt_relock_find(struct gt_graph *graph);

/* Finds only waits for locks on files: before gt_handed_find, which would infer them. */
void gt_relock_find_of_files(struct gt_graph *graph);
