/*
 * Waits for Python's own locks (stacks/pymutex.h), and their holders. A thread that takes such a
 * lock while it is free, or gives it up while no thread is queued, makes no call. So all that is
 * seen is a wait, and the thread that ends the wait by giving the lock up. That thread has held the
 * lock since the wait began, if one of these is so, and no other queued thread was let in
 * meanwhile:
 *
 * - The lock is an RLock, which only its owner can give up.
 * - The thread leaves a `with` block, so it is the one that has entered the block.
 * - The thread was given the lock when the waiter was queued already.
 *
 * Otherwise nothing is said of the holder: any thread may release a threading.Lock, and Python's
 * condition variables use them as signals.
 */
#pragma once

#include "preload/shared/leaves.h"
#include "preload/waits/wait.h"

#include <semaphore.h>

/* As gt_wait_begin_lock, at a semaphore that belongs to the lock. */
struct gt_wait gt_py_lock_begin(enum gt_hook hook, const sem_t *sem, const void *lock,
                                const struct gt_timeout *end);

/* The wait is over, because another thread has posted. It was in a function called at pc. */
void gt_py_lock_waited(const sem_t *sem, const void *lock, const void *pc);

/* The caller has given the lock up, and is about to post. */
void gt_py_lock_passed(enum gt_hook hook, const sem_t *sem, const void *lock);
