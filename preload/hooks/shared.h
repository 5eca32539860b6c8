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

/*
 * Read-write locks of glibc (nptl/pthread_rwlock_common.c). Whether the one who is about to unlock
 * it, which is a writer in the write phase, lets anybody in. `writers` has a flag on top, and is of
 * those locks that prefer writers.
 */
static inline bool gt_shared_rwlock_is_awaited(const pthread_rwlock_t *lock)
{
    enum { WRITE_PHASE = 1, WRITER = 2, READERS_WAIT = 4, READER = 8, FUTEX_USED = 2 };
    uint32_t readers = __atomic_load_n(&lock->__data.__readers, __ATOMIC_RELAXED);
    uint32_t writers = __atomic_load_n(&lock->__data.__writers, __ATOMIC_RELAXED);
    uint32_t futex = __atomic_load_n(&lock->__data.__writers_futex, __ATOMIC_RELAXED);
    if (readers & WRITE_PHASE)
        return readers / READER || readers & READERS_WAIT || writers << 1 || futex & FUTEX_USED;
    return readers / READER == 1 && readers & WRITER;
}

/* pthread_barrier_t of glibc (sysdeps/nptl/internaltypes.h, the same everywhere since 2.25). */
struct gt_barrier {
    uint32_t come, round; /* all who ever have; and until the round before was complete */
    uint32_t count, shared;
} __attribute__((may_alias));

/* Barriers are not awaited, but complete; of others than libc's nothing is told. */
static inline bool gt_shared_is_awaited(enum gt_lock_kind kind, const void *lock)
{
    const struct gt_sem *sem = lock;
    const pthread_mutex_t *mutex = lock;
    const pthread_cond_t *cond = lock;
    const pthread_rwlock_t *rwlock = lock;
    uint32_t waiters;
    switch (kind) {
    case GT_LOCK_SEM:
        return __atomic_load_n(&sem->tokens_and_waiters, __ATOMIC_RELAXED) >> 32 && sem->shared;
    case GT_LOCK_COND: /* how many, eight times, and flags */
        waiters = __atomic_load_n(&cond->__data.__wrefs, __ATOMIC_RELAXED);
        return waiters & 1 && waiters >> 3;
    case GT_LOCK_MUTEX:
        return mutex->__data.__kind & GT_MUTEX_SHARED && gt_shared_mutex_is_awaited(mutex);
    case GT_LOCK_RWLOCK: return rwlock->__data.__shared && gt_shared_rwlock_is_awaited(rwlock);
    default: return false;
    }
}

/* Whether other processes may have it, too; it can be read. */
bool gt_shared_is(enum gt_lock_kind kind, const void *lock);

/* The caller is about to let in one of them who wait at the lock, inside `hook`; or all. */
void gt_shared_wakes(uint32_t hook, const void *lock, bool all);

#endif
