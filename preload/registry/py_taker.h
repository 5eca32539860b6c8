/*
 * Which thread holds a lock of Python's that is a semaphore, as up to 3.12: the thread that took it
 * last in Python's code, and has not released it. That is inferred: Python's condition variables
 * and queues have a lock released by another thread than its taker. A semaphore with which that has
 * happened has no holder any more. Any context.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The takers, by address. An entry is one word, so that a thread and a lock that do not belong
 * together are never read: the address without its low 16 bits, marks, and the thread's number. Of
 * two locks of an entry the later one is known. The marks:
 *
 *   PASSED   another thread than its taker has released the lock
 *   MIXED    an earlier lock of the entry was PASSED; if it comes back it counts as PASSED
 */
enum { GT_PY_TAKERS = 4096, GT_PY_PASSED = 1 << 30, GT_PY_MIXED = 1 << 29 };
extern _Atomic uint64_t gt_py_takers[GT_PY_TAKERS];

static inline _Atomic uint64_t *gt_py_taker_slot(const void *sem)
{
    return &gt_py_takers[(uintptr_t)sem / 16 % GT_PY_TAKERS];
}

static inline uint64_t gt_py_taker_entry(const void *sem, uint32_t state)
{
    return (uint64_t)((uintptr_t)sem >> 16) << 32 | state;
}

static inline bool gt_py_taker_is_its(const void *sem, uint64_t entry)
{
    return (entry ^ gt_py_taker_entry(sem, 0)) >> 32 == 0;
}

static inline uint64_t gt_py_taker_read(const void *sem)
{
    return atomic_load_explicit(gt_py_taker_slot(sem), memory_order_relaxed);
}

/* The thread's number, and PASSED; 0: the entry is another lock's. */
static inline uint32_t gt_py_taker_state(const void *sem)
{
    uint64_t entry = gt_py_taker_read(sem);
    return gt_py_taker_is_its(sem, entry) ? (uint32_t)entry & ~(uint32_t)GT_PY_MIXED : 0;
}

/* The marks of the lock when it gets the entry, or has it. */
static inline uint32_t gt_py_taker_marks(const void *sem)
{
    enum { BOTH = GT_PY_PASSED | GT_PY_MIXED };
    uint64_t entry = gt_py_taker_read(sem);
    uint32_t marks = entry & BOTH;
    return gt_py_taker_is_its(sem, entry) || !marks ? marks : BOTH;
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
    gt_py_taker_set(sem, gt_py_taker_marks(sem) | tid);
}

/* Thread tid is about to post to the semaphore in Python's code. */
static inline void gt_py_taker_posts(const void *sem, uint32_t tid)
{
    uint32_t taker = gt_py_taker_state(sem), mixed = gt_py_taker_marks(sem) & GT_PY_MIXED;
    if (taker)
        gt_py_taker_set(sem, mixed | (taker == tid ? 0 : GT_PY_PASSED));
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
    uint32_t marks = gt_py_taker_marks(sem);
    if (marks || gt_py_taker_state(sem))
        gt_py_taker_set(sem, marks & GT_PY_MIXED);
}
