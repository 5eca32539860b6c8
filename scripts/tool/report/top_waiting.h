/* Waits that have not ended when the trace does: a program that hangs shows here why. */
#pragma once

#include "encoder/read/threads.h"

/*
 * A row for a thread that waits when the trace ends. kind: with the kind of the wait:
 *
 *   "1.5s  sync  thread 123: pthread_mutex_lock <- commit (db.c:12), cache_lock, held by 124"
 */
void gt_print_waiter(const struct gt_threads *threads, const struct gt_thread_state *t, bool kind);

/*
 * Prints deadlocks, then one row for each waiter of these kinds (one bit each), the longest wait
 * first, at most `most`. Prints no text if there are none.
 */
void gt_print_waiting(const struct gt_threads *threads, unsigned kinds, size_t most);
