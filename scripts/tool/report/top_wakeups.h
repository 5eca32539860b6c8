/* `gotrace top --wakeups`: how condition variables were waited for and signalled. */
#ifndef GT_TOP_WAKEUPS_H
#define GT_TOP_WAKEUPS_H

#include "encoder/read/threads.h"

/* A wait of the trace that is being read. */
void gt_top_wakeups_add(const struct gt_span *span);

/* So many variables at most. */
void gt_top_wakeups_print(const struct gt_threads *threads, size_t most);

#endif
