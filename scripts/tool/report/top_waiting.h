/* Waits that have not ended when the trace does: what hangs stands there. */
#ifndef GT_TOP_WAITING_H
#define GT_TOP_WAITING_H

#include "encoder/read/threads.h"

/*
 * A row of a thread that waits then; kind: with the way in which it does:
 * "1.5s  sync  thread 123: pthread_mutex_lock <- commit (db.c:12), cache_lock, held by 124"
 */
void gt_print_waiter(const struct gt_threads *threads, const struct gt_thread_state *t, bool kind);

/*
 * Deadlocks, and those who wait in one of these ways (a bit each): a row for each, the longest
 * first, so many at most. No text where there are none.
 */
void gt_print_waiting(const struct gt_threads *threads, unsigned kinds, size_t most);

#endif
