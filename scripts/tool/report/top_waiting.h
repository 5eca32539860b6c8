/* Waits that have not ended when the trace does: what hangs stands there. */
#ifndef GT_TOP_WAITING_H
#define GT_TOP_WAITING_H

#include "encoder/read/threads.h"

/* Whether the thread waits then, in one of these ways (a bit each). And for how long. */
bool gt_is_waiting(const struct gt_thread_state *t, unsigned kinds);
uint64_t gt_waiting_ns(const struct gt_threads *threads, const struct gt_thread_state *t);

/* "pthread_mutex_lock <- commit (db.c:12), cache_lock, held by 123 committer" */
void gt_print_wait(const struct gt_threads *threads, const struct gt_thread_state *t);

/* A line for each thread that does, the longest first, so many at most; nothing where none does. */
void gt_print_waiting(const struct gt_threads *threads, unsigned kinds, size_t most);

#endif
