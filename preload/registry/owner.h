/*
 * The owner of a lock: the kernel's id of the thread that holds it, as libc and the kernel keep it
 * there. Reading it writes nothing and takes no lock; the answer may be out of date at once.
 */
#pragma once

#include "encoder/thread/held.h"

/* What a wait is for. The kind says how to find the holder at the wait's address. */
enum gt_lock_kind {
    GT_LOCK_NONE,    /* not worth a name: the end of a thread, a sleep */
    GT_LOCK_OTHER,   /* has no owner: futexes of libraries other than libc */
    GT_LOCK_SEM,     /* sem_t; has an owner if it serves as a lock (sem_lock.h) */
    GT_LOCK_COND,    /* pthread_cond_t, has no owner */
    GT_LOCK_BARRIER, /* pthread_barrier_t that processes share, has no owner */
    GT_LOCK_PYMUTEX, /* Python's, names no owner: stacks/pymutex.h */
    GT_LOCK_MUTEX,   /* pthread_mutex_t */
    GT_LOCK_RWLOCK,  /* pthread_rwlock_t */
    GT_LOCK_GIL,     /* Python's: stacks/gil.h */
    GT_LOCK_PYRLOCK, /* a GT_LOCK_PYMUTEX that names its owner */
    GT_LOCK_PYSEM,   /* a GT_LOCK_SEM that a thread has taken in Python's code: py_taker.h */
    GT_LOCK_PI,      /* a futex whose word names its owner: FUTEX_LOCK_PI */
    GT_LOCK_JOIN,    /* the end of a thread; the address is its pthread_t */
};

/*
 * The lock that threads at an address wait for. A read-write lock has two addresses
 * (sync_rwlock.c).
 */
static inline const void *gt_lock_at(const void *addr)
{
    return (const void *)((uintptr_t)addr & ~(uintptr_t)1);
}

/*
 * The lock's owner, a thread's number or a value of enum gt_holder. The lock's memory must be
 * readable. The number is the kernel's, in the pid namespace of the owner, which may differ from
 * ours for a lock that processes share. Any context.
 */
uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock);

/* In a forked child. before: the calling thread's number in the parent. */
void gt_owner_forked(uint32_t before);
