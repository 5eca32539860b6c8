/* Threads that wait for each other when a trace ends, so that none of them will ever go on. */
#ifndef GT_DEADLOCKS_H
#define GT_DEADLOCKS_H

#include "encoder/read/threads.h"

/* Whether there are any. */
bool gt_any_deadlock(const struct gt_threads *threads);

/* Says so, if there are. */
void gt_print_deadlocks(const struct gt_threads *threads);

#endif
