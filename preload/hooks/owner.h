/*
 * Who holds a lock, by what libc and the kernel keep there: the kernel's id of the thread. Nothing
 * is written, and no lock taken; the answer is of a moment.
 */
#ifndef GT_OWNER_H
#define GT_OWNER_H

#include "encoder/held.h"

/* What a wait is for, as far as its address tells who holds it. */
enum gt_lock_kind {
    GT_LOCK_NONE,    /* nothing that is worth a name: the end of a thread, a sleep */
    GT_LOCK_OTHER,   /* nobody's: futexes of others than libc */
    GT_LOCK_SEM,     /* sem_t, nobody's */
    GT_LOCK_COND,    /* pthread_cond_t, nobody's */
    GT_LOCK_BARRIER, /* pthread_barrier_t that processes share, nobody's */
    GT_LOCK_MUTEX,   /* pthread_mutex_t */
    GT_LOCK_RWLOCK,  /* pthread_rwlock_t */
    GT_LOCK_PI,      /* a futex whose word says it: FUTEX_LOCK_PI */
    GT_LOCK_JOIN,    /* the end of a thread: its pthread_t */
};

/* The lock of those that wait at an address: of a read-write lock in two lines (sync_rwlock.c). */
static inline const void *gt_lock_at(const void *addr)
{
    return (const void *)((uintptr_t)addr & ~(uintptr_t)1);
}

/*
 * Bits of a mutex's kind in glibc (nptl/pthreadP.h), beside its type. With one of the first three
 * its word is not that of others.
 */
enum {
    GT_MUTEX_ROBUST = 0x10,
    GT_MUTEX_PRIO_INHERIT = 0x20,
    GT_MUTEX_PRIO_PROTECT = 0x40,
    GT_MUTEX_SHARED = 0x80,
};

/*
 * Its thread, or of enum gt_holder; the memory can be read. As the kernel numbers threads in the
 * namespace of that one, which for a lock that processes share may be another one's. Any context.
 */
uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock);

/* In a forked child; before: the calling thread's number in the parent. */
void gt_owner_forked(uint32_t before);

#endif
