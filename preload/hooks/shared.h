/*
 * Locks that processes share. Who waits there may be another process's, of which no registry here
 * knows, and in whose trace the wait ends by itself; so who ends such a wait leaves a log, where
 * libc's own words say that somebody waits (GT_HOLDER_WAKER): what nobody waits for costs a look at
 * a line that libc looks at, too.
 */
#ifndef GT_SHARED_H
#define GT_SHARED_H

#include "owner.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

/* sem_t of glibc (nptl/internaltypes.h, struct new_sem), where an instruction changes 64 bits. */
struct gt_sem {
    uint64_t tokens_and_waiters; /* these above bit 32 */
    uint32_t shared;
} __attribute__((may_alias));

/* The word of a robust one, or one that inherits priority, is the kernel's. */
static inline bool gt_shared_mutex_is_awaited(const pthread_mutex_t *mutex)
{
    uint32_t word = __atomic_load_n((const uint32_t *)&mutex->__data.__lock, __ATOMIC_RELAXED);
    return word == 2 || word & FUTEX_WAITERS;
}

/* Of read-write locks and barriers nothing is told; so is of others than libc's. */
static inline bool gt_shared_is_awaited(enum gt_lock_kind kind, const void *lock)
{
    const struct gt_sem *sem = lock;
    const pthread_mutex_t *mutex = lock;
    const pthread_cond_t *cond = lock;
    uint32_t waiters;
    switch (kind) {
    case GT_LOCK_SEM:
        return __atomic_load_n(&sem->tokens_and_waiters, __ATOMIC_RELAXED) >> 32 && sem->shared;
    case GT_LOCK_COND: /* how many, eight times, and flags */
        waiters = __atomic_load_n(&cond->__data.__wrefs, __ATOMIC_RELAXED);
        return waiters & 1 && waiters >> 3;
    case GT_LOCK_MUTEX:
        return mutex->__data.__kind & GT_MUTEX_SHARED && gt_shared_mutex_is_awaited(mutex);
    default: return false;
    }
}

/* Whether other processes may have it, too; it can be read. */
bool gt_shared_is(enum gt_lock_kind kind, const void *lock);

/* The caller is about to let in one of them who wait at the lock, inside `hook`; or all. */
void gt_shared_wakes(uint32_t hook, const void *lock, bool all);

#endif
