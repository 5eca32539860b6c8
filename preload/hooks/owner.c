/* See owner.h. */
#include "owner.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/futex.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>

/* What the first thread was called before its process was forked: in one, and in that one's parent.
 */
enum { FORKS_MAX = 8 };
static struct {
    uint32_t before[FORKS_MAX], now;
    int n;
} first;

void gt_owner_forked(uint32_t before)
{
    memmove(first.before + 1, first.before, sizeof first.before - sizeof *first.before);
    first.before[0] = before;
    first.now = (uint32_t)gt_syscall(SYS_gettid);
    first.n += first.n < FORKS_MAX;
}

/* A thread has its locks in the child, too, where they still say its old number. */
static uint32_t here(uint32_t owner, bool shared)
{
    for (int i = 0; i < first.n && !shared; i++) {
        if (owner == first.before[i])
            return first.now;
    }
    return owner;
}

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
    return here(owner_of_plain(mutex), load(&mutex->__data.__kind) & GT_MUTEX_SHARED);
}

/* The lowest three bits of __readers are no readers. */
static uint32_t owner_of_rwlock(const pthread_rwlock_t *lock)
{
    uint32_t writer = load(&lock->__data.__cur_writer);
    return writer                               ? here(writer, lock->__data.__shared)
           : load(&lock->__data.__readers) >> 3 ? GT_HOLDER_READERS
                                                : 0;
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
