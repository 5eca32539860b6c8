/* See owner.h. */
#include "owner.h"

#include "py_taker.h"
#include "sem_lock.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"
#include "encoder/format/lock_texts.h"
#include "preload/stacks/gil.h"
#include "preload/stacks/pymutex.h"

#include <string.h>

/*
 * The numbers that the process's first thread had before forks: in the parent, in the parent's
 * parent, and so on.
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

/*
 * The owner's number in this process. After a fork the thread still has its locks in the child,
 * where they name its old number.
 */
static uint32_t here(uint32_t owner, bool shared)
{
    for (int i = 0; i < first.n && !shared; i++) {
        if (owner == first.before[i])
            return first.now;
    }
    return owner;
}

/* A thread that has just taken a mutex writes its number a few instructions later. */
static uint32_t owner_of_mutex(const pthread_mutex_t *mutex)
{
    enum { TIMES = 100 };
    uint32_t kind = gt_glibc_mutex_kind(mutex), owner = gt_glibc_mutex_owner(mutex);
    if (kind & (GT_MUTEX_ROBUST | GT_MUTEX_PRIO_INHERIT))
        return owner;
    for (int i = 0; i < TIMES && !owner && gt_glibc_load(gt_glibc_mutex_word(mutex)); i++) {
        gt_arch_pause();
        owner = gt_glibc_mutex_owner(mutex);
    }
    return here(owner, kind & GT_MUTEX_SHARED);
}

static uint32_t owner_of_rwlock(const pthread_rwlock_t *lock)
{
    uint32_t writer = gt_glibc_rwlock_writer(lock);
    return writer                          ? here(writer, gt_glibc_rwlock_is_shared(lock))
           : gt_glibc_rwlock_readers(lock) ? GT_HOLDER_READERS
                                           : 0;
}

uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock)
{
    switch (kind) {
    case GT_LOCK_MUTEX: return owner_of_mutex(lock);
    case GT_LOCK_RWLOCK: return owner_of_rwlock(lock);
    case GT_LOCK_SEM: return here(gt_sem_lock_owner(lock), false);
    case GT_LOCK_GIL: return here(gt_gil_owner(lock), false);
    case GT_LOCK_PYRLOCK: return here(gt_pymutex_rlock_owner(lock), false);
    case GT_LOCK_PYSEM: return here(gt_py_taker_of(lock), false);
    case GT_LOCK_PI: return gt_glibc_load(lock) & FUTEX_TID_MASK;
    default: return GT_HOLDER_UNKNOWN;
    }
}
