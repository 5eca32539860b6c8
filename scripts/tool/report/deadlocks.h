/*
 * Deadlocks: threads that wait for each other, or for a thread that has ended, when a trace ends.
 */
#pragma once

#include "encoder/read/threads.h"

/* Whether the trace ends with a deadlock. */
bool gt_any_deadlock(const struct gt_threads *threads);

/* Prints the deadlocks, if there are any. */
void gt_print_deadlocks(const struct gt_threads *threads);
