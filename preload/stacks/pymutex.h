/*
 * Locks that CPython makes itself, from 3.13 on: threading.Lock (in 3.13.5, not in 3.13.0), from
 * 3.14 on threading.RLock, and the interpreter's own. Such a PyMutex is one byte. It names no
 * thread that has it, and taking it while it is free is no call. A thread that has to wait queues a
 * record, which is on its stack, and waits for a semaphore inside the record. A thread that gives
 * the lock up while others are queued takes the first record out of the queue, and posts to that
 * semaphore.
 *
 * These functions tell from a semaphore which lock it belongs to. A free-threaded Python has such
 * locks, too.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_module;
struct link_map;

/*
 * The code of the module with Python's interpreter, whether or not that version has such locks.
 * size 0: there is no interpreter, or it is newer than 3.15.
 */
extern struct gt_pymutex_code {
    _Atomic uintptr_t at, size;
} gt_pymutex_code;

/* Notes that the module has the interpreter of that version (PY_VERSION_HEX). */
void gt_pymutex_find(const struct gt_module *module, uint32_t version);

/*
 * The lock that a semaphore belongs to; NULL: it belongs to none. The caller waits there, or is
 * about to post there, by a function that Python's code has called.
 */
const void *gt_pymutex_waited_slow(const void *sem);
const void *gt_pymutex_posted(const void *sem);

static inline bool gt_pymutex_is_code(const void *pc)
{
    return (uintptr_t)pc - atomic_load_explicit(&gt_pymutex_code.at, memory_order_relaxed) <
           atomic_load_explicit(&gt_pymutex_code.size, memory_order_relaxed);
}

static inline const void *gt_pymutex_waited(const void *sem, const void *pc)
{
    return __builtin_expect(gt_pymutex_is_code(pc), 0) ? gt_pymutex_waited_slow(sem) : NULL;
}

/* The lock of a semaphore that gt_pymutex_waited knows, as long as its thread waits there. */
const void *gt_pymutex_of(const void *sem);

/* Whether the thread that waited at a lock's semaphore was given the lock by the one that posted.
 */
bool gt_pymutex_is_given(const void *sem);

/* Whether threads are queued at the lock. The lock exists. */
bool gt_pymutex_is_awaited(const void *lock);

/* Whether the lock is a threading.RLock, and the kernel's number of the thread that has it, or 0.
 */
bool gt_pymutex_is_rlock(const void *lock);
uint32_t gt_pymutex_rlock_owner(const void *lock);
