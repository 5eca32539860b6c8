/*
 * Which thread holds a lock of Python's that is a semaphore, as up to 3.12: the thread that took it
 * last in Python's code, and has not released it. That is inferred: Python's condition variables
 * and queues have a lock released by another thread than its taker. A semaphore with which that has
 * happened has no holder any more. Any context.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/*
 * The takers, by address. An entry is one word, so that a thread and a lock that do not belong
 * together are never read: the address without its low 16 bits, PASSED, and the thread's number. Of
 * two locks of an entry the later one is known.
 */
enum { GT_PY_TAKERS = 4096, GT_PY_PASSED = 1 << 30 };
extern _Atomic uint64_t gt_py_takers[GT_PY_TAKERS];

static inline _Atomic uint64_t *gt_py_taker_slot(const void *sem)
{
    return &gt_py_takers[(uintptr_t)sem / 16 % GT_PY_TAKERS];
}

static inline uint64_t gt_py_taker_entry(const void *sem, uint32_t state)
{
    return (uint64_t)((uintptr_t)sem >> 16) << 32 | state;
}

/* The part of its entry below the address; 0: the entry is another lock's. */
static inline uint32_t gt_py_taker_state(const void *sem)
{
    uint64_t entry = atomic_load_explicit(gt_py_taker_slot(sem), memory_order_relaxed);
    return (entry ^ gt_py_taker_entry(sem, 0)) >> 32 ? 0 : (uint32_t)entry;
}

/* No other thread writes an entry for this lock meanwhile, unless it releases the lock as a signal.
 */
static inline void gt_py_taker_set(const void *sem, uint32_t state)
{
    atomic_store_explicit(gt_py_taker_slot(sem), gt_py_taker_entry(sem, state),
                          memory_order_relaxed);
}

/* Thread tid has taken the semaphore in Python's code. */
static inline void gt_py_taker_takes(const void *sem, uint32_t tid)
{
    gt_py_taker_set(sem, (gt_py_taker_state(sem) & GT_PY_PASSED) | tid);
}

/* Thread tid is about to post to the semaphore in Python's code. */
static inline void gt_py_taker_posts(const void *sem, uint32_t tid)
{
    uint32_t taker = gt_py_taker_state(sem);
    if (taker)
        gt_py_taker_set(sem, taker == tid ? 0 : GT_PY_PASSED);
}

/* The thread that holds it; 0: no thread, or not known. */
static inline uint32_t gt_py_taker_of(const void *sem)
{
    uint32_t taker = gt_py_taker_state(sem);
    return taker & GT_PY_PASSED ? 0 : taker;
}

/* A semaphore begins at the address. */
static inline void gt_py_taker_begins(const void *sem)
{
    if (gt_py_taker_state(sem))
        gt_py_taker_set(sem, 0);
}
