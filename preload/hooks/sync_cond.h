/* What other hooks need of condition variables. */
#ifndef GT_SYNC_COND_H
#define GT_SYNC_COND_H

#include "wait.h"

/* The caller gives the mutex up and waits at cond, inside `hook`; as gt_wait_begin. */
struct gt_wait gt_cond_begin(enum gt_hook hook, const void *cond, pthread_mutex_t *mutex);

#endif
