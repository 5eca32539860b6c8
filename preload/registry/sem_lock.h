/*
 * Semaphores that serve as locks, such as CPython's threading.Lock up to 3.12, and their holders.
 * A sem_t names no owner. While one is hot (hot.h), its takers are noted. It is taken for a lock
 * once threads have posted what they took themselves, several times in a row. Until it is
 * initialised again, a semaphore is never a lock after one of these:
 *
 * - It was initialised with a value other than 1.
 * - A thread took a token while a thread had one.
 * - A thread posted a token that another thread took.
 *
 * Each slot of the registry remembers one semaphore; of a second one nothing is known. Any context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Thread tid has taken a token of a hot semaphore. true: the semaphore is known to be a lock. */
bool gt_sem_lock_taken(const void *sem, uint32_t tid);

/* Thread tid is about to post to a hot semaphore. true: by that it gives up a lock. */
bool gt_sem_lock_posted(const void *sem, uint32_t tid);

/* Whether the semaphore is known to be no lock. */
bool gt_sem_lock_is_none(const void *sem);

/* The thread that has the token of a known lock; 0: no thread, or not known. */
uint32_t gt_sem_lock_owner(const void *sem);

/*
 * The slot of that lock has cooled, or all slots have: tokens were given back unseen. The first one
 * writes only to the slot of a lock that was hot.
 */
void gt_sem_lock_cooled(const void *lock);
void gt_sem_lock_all_cooled(void);

/* A semaphore begins at the address, with so many tokens. A lock begins with one. */
void gt_sem_lock_begins(const void *sem, unsigned tokens_now);
