/* What other hooks need of mutexes. */
#ifndef GT_SYNC_MUTEX_H
#define GT_SYNC_MUTEX_H

#include "real.h"

/* The caller is about to give the mutex up, inside `hook`: ends the wait of its oldest waiter. */
void gt_mutex_release(enum gt_hook hook, pthread_mutex_t *mutex);

#endif
