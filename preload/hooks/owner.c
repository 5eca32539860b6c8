/* See owner.h. */
#include "owner.h"

#include "encoder/base/arch/arch.h"

#include <linux/futex.h>
#include <pthread.h>

static uint32_t load(const void *word)
{
    return __atomic_load_n((const uint32_t *)word, __ATOMIC_RELAXED);
}

/* Who has just taken a mutex says so a few instructions later. */
static uint32_t owner_of_plain(const pthread_mutex_t *mutex)
{
    enum { TIMES = 100 };
    uint32_t owner = 0;
    for (int i = 0; i < TIMES && !owner && load(&mutex->__data.__lock); i++) {
        owner = load(&mutex->__data.__owner);
        if (!owner)
            gt_arch_pause();
    }
    return owner;
}

/* The kernel has to know whose a robust one is, or one that inherits priority: in its word. */
static uint32_t owner_of_mutex(const pthread_mutex_t *mutex)
{
    if (load(&mutex->__data.__kind) & (GT_MUTEX_ROBUST | GT_MUTEX_PRIO_INHERIT))
        return load(&mutex->__data.__lock) & FUTEX_TID_MASK;
    return owner_of_plain(mutex);
}

/* The lowest three bits of __readers are no readers. */
static uint32_t owner_of_rwlock(const pthread_rwlock_t *lock)
{
    uint32_t writer = load(&lock->__data.__cur_writer);
    return writer ? writer : load(&lock->__data.__readers) >> 3 ? GT_HOLDER_READERS : 0;
}

uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock)
{
    switch (kind) {
    case GT_LOCK_MUTEX: return owner_of_mutex(lock);
    case GT_LOCK_RWLOCK: return owner_of_rwlock(lock);
    case GT_LOCK_PI: return load(lock) & FUTEX_TID_MASK;
    default: return GT_HOLDER_UNKNOWN;
    }
}
