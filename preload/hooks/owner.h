/*
 * Who holds a lock, by what libc and the kernel keep there: the kernel's id of the thread. Nothing
 * is written, and no lock taken; the answer is of a moment.
 */
#ifndef GT_OWNER_H
#define GT_OWNER_H

#include "encoder/held.h"

/* What a wait is for, as far as its address tells who holds it. */
enum gt_lock_kind {
    GT_LOCK_NONE,   /* nothing that is worth a name: the end of a thread, a sleep */
    GT_LOCK_OTHER,  /* nobody's: semaphores, condition variables, futexes of others than libc */
    GT_LOCK_MUTEX,  /* pthread_mutex_t */
    GT_LOCK_RWLOCK, /* pthread_rwlock_t */
    GT_LOCK_PI,     /* a futex whose word says it: FUTEX_LOCK_PI */
    GT_LOCK_JOIN,   /* the end of a thread: its pthread_t */
};

/*
 * Its thread, or of enum gt_holder; the memory can be read. As the kernel numbers threads in the
 * namespace of that one, which for a lock that processes share may be another one's. Any context.
 */
uint32_t gt_owner_of(enum gt_lock_kind kind, const void *lock);

#endif
