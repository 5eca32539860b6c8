/*
 * Locks that processes share. A waiter may belong to another process. Our registry does not know
 * it, and in that process's trace the wait has no waker. So the thread that ends the wait leaves a
 * log (GT_HOLDER_WAKER), if libc's own words say that a thread waits. Without waiters this costs a
 * look at a cache line that libc reads anyway.
 */
#pragma once

#include "encoder/base/glibc.h"
#include "preload/shared/lock_kind.h"

/*
 * Whether another process's thread may wait for the lock. false for barriers, which sync_barrier.c
 * looks at itself, and for locks that are not libc's.
 */
static inline bool gt_shared_is_awaited(enum gt_lock_kind kind, const void *lock)
{
    uint32_t flags;
    switch (kind) {
    case GT_LOCK_SEM: return gt_glibc_sem_is_awaited(lock) && ((const struct gt_sem *)lock)->shared;
    case GT_LOCK_COND:
        flags = gt_glibc_cond_flags(lock);
        return flags & GT_COND_SHARED && flags >> GT_COND_WAITERS_SHIFT;
    case GT_LOCK_MUTEX: return gt_glibc_mutex_is_shared(lock) && gt_glibc_mutex_is_awaited(lock);
    case GT_LOCK_RWLOCK: return gt_glibc_rwlock_is_shared(lock) && gt_glibc_rwlock_is_awaited(lock);
    default: return false;
    }
}

/* Whether other processes may use the lock, too. Its memory must be readable. */
bool gt_shared_is(enum gt_lock_kind kind, const void *lock);

/*
 * Logs that the caller is about to wake one of the threads that wait at the lock, or all of them,
 * inside `hook`.
 */
void gt_shared_wakes(uint32_t hook, const void *lock, bool all);
