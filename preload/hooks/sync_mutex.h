/* What other hooks need of mutexes. */
#ifndef GT_SYNC_MUTEX_H
#define GT_SYNC_MUTEX_H

#include "registry.h"

#include "preload/real.h"

void gt_mutex_release_slow(enum gt_hook hook, pthread_mutex_t *mutex);

/* The caller is about to give the mutex up, inside `hook`: ends the wait of its oldest waiter. */
static inline void gt_mutex_release(enum gt_hook hook, pthread_mutex_t *mutex)
{
    if (__builtin_expect(gt_registry_any(mutex), 0))
        gt_mutex_release_slow(hook, mutex);
}

#endif
