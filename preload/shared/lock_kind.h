/* What a wait is for. The kind says how to find the holder at the wait's address. */
#pragma once

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
