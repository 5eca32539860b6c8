/* `gotrace top --holders` and `--by-lock`: who held the locks that threads waited for, doing what.
 */
#ifndef GT_TOP_LOCKS_H
#define GT_TOP_LOCKS_H

#include "encoder/read/threads.h"

/* A wait of the trace that is being read, with gt_threads.keep_history. */
void gt_top_locks_add(const struct gt_threads *threads, const struct gt_span *span, bool by_lock);

/* So many rows at most. */
void gt_top_locks_print(const struct gt_threads *threads, bool by_lock, size_t most);

#endif
