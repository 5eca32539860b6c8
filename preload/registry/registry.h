/*
 * The registry of waiters: address → waiting threads, oldest first, as in the kernel's futex
 * queues. A thread that is about to block registers itself. A thread that is about to end a wait at
 * the address looks there first.
 *
 * gt_registry_any is the whole cost of an unlock without waiters: one load. It may miss a thread
 * that is registering at this moment. The trace then shows that thread as waking without a waker.
 *
 * Any thread; signal handlers under the guard of thread.h.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_g;

struct gt_waiter {
    const void *addr; /* NULL: not registered */
    struct gt_waiter *next, *prev;
    struct gt_g *g;
    uint64_t since; /* when it began to wait */
    uint64_t woken; /* when its last GoUnblock was written; 0: never */
    uint32_t bits;  /* of FUTEX_WAIT_BITSET; 0: all */
    uint8_t kind;   /* enum gt_lock_kind, of what is at addr */
    bool timed;     /* the wait has a timeout */
    bool again;     /* this is the `relock` of a condition variable's waiter */
    bool final;     /* the first wake-up ends the wait: the thread does not go back to sleep */
    uint64_t turn;  /* order in its shard: lower turns are woken first */
    bool outrun;    /* another waiter got its wake-up: see gt_registry_remove */
    bool in_line;   /* false: gt_registry_add has not been finished, or no lock was taken since */
    /*
     * The second entry of a condition variable's waiter, NULL in others. After its wake-up the
     * waiter must still get its mutex. Then it becomes a waiter of the mutex through this entry.
     */
    struct gt_waiter *relock;
    const void *mutex;
};

#define GT_REGISTRY_SLOTS 4096u
/*
 * A word for each slot. Its low bits count the slot's waiters. Its upper half, in units of
 * GT_REGISTRY_ASLEEP, counts the waiters that were not woken. Flags lie between: see hot.h,
 * signalled.h, and gt_registry_keep.
 */
#define GT_REGISTRY_ASLEEP (UINT64_C(1) << 32)
#define GT_REGISTRY_HOT (UINT64_C(1) << 31)
#define GT_REGISTRY_COND (UINT64_C(1) << 30)
#define GT_REGISTRY_KEPT (UINT64_C(1) << 29)
#define GT_REGISTRY_WAITERS (GT_REGISTRY_KEPT - 1)
extern _Atomic uint64_t gt_registry_count[GT_REGISTRY_SLOTS];

static inline uint32_t gt_registry_slot(const void *addr)
{
    return (uint32_t)(((uintptr_t)addr * 0x9e3779b97f4a7c15u) >> 52);
}

static inline uint64_t gt_registry_word(const void *addr)
{
    return atomic_load_explicit(&gt_registry_count[gt_registry_slot(addr)], memory_order_relaxed);
}

/* Whether the address's slot has waiters or flags. */
static inline bool gt_registry_any(const void *addr)
{
    return gt_registry_word(addr) != 0;
}

/* Whether a mutex of the address's slot is kept: see gt_registry_keep. */
static inline bool gt_registry_is_kept(const void *addr)
{
    return gt_registry_word(addr) & GT_REGISTRY_KEPT;
}

/* The number of waiters at the address and at the other addresses of its slot. */
static inline uint32_t gt_registry_waits(const void *addr)
{
    return gt_registry_word(addr) & GT_REGISTRY_WAITERS;
}

/*
 * GT_REGISTRY_KEPT, without a lock. The mutexes of a slot have the flag in common: a kept mutex may
 * count as given up, but not the reverse.
 *
 * - keep: the thread has the mutex, and will keep it.
 * - keeps: no mutex of the slot was given up, or kept by another thread, since that thread's keep.
 * - ends_keep: a mutex of the slot is given up. true: the flag was set.
 */
void gt_registry_keep(const void *mutex, uint32_t tid);
bool gt_registry_keeps(const void *mutex, uint32_t tid);
bool gt_registry_ends_keep(const void *mutex);

/*
 * What an unlock needs to know about waiters that were woken before. A mutex may be unlocked a
 * thousand times between the wake-up of its only waiter and the moment when that thread runs. No
 * lock; the last two may read the clock. All three functions count the other addresses of the slot
 * as this one.
 *
 * - all_woken: all waiters at the address were woken already.
 * - may_sleep_again: a woken waiter has had the time to go back to sleep. *now: the time, or 0.
 *   If the function needs the time and has 0, it reads the clock and stores the time there.
 * - reaches: a wake would reach a waiter now, even if only one that went back to sleep.
 */
bool gt_registry_all_woken(const void *addr);
bool gt_registry_may_sleep_again(const void *addr, uint64_t *now);
bool gt_registry_reaches(const void *addr);

/* Whether there is a waiter that a wake would reach. */
static inline bool gt_registry_awaits(const void *addr)
{
    return gt_registry_waits(addr) && gt_registry_reaches(addr);
}

/*
 * Registers w at addr, after the block event is written. The caller has set the members from g to
 * mutex except the times. now: trace time. Takes no lock: thousands of threads may come to wait
 * while a thread that has lost its CPU holds the lock. The next thread that takes the lock puts w
 * into its line.
 */
void gt_registry_add(struct gt_waiter *w, const void *addr, uint64_t now);

/*
 * Takes w out after the real call has returned.
 *
 * took: w's thread got what it waited for, and only a thread of this process can have woken it. If
 * w slept and no wake-up was written for it, another waiter was taken for it: the order of the
 * kernel's queue is not the order in which threads came to us. That other waiter still sleeps,
 * becomes the first in line, and waits on in the trace.
 *
 * true: no thread refers to w or its goroutine any more. false: the lock could not be taken
 * (gt_lock_within). Then w must stay, and nothing may be written for its goroutine.
 */
bool gt_registry_remove(struct gt_waiter *w, bool took, int64_t patience_ns)
    __attribute__((warn_unused_result));

/*
 * The kernel says that w's thread sleeps at `futex`. If that is a part of what w waits for, and w
 * was woken, w becomes the first in line. false: not so, or its lock is not free. Takes no lock
 * that is not free: the caller holds the lock of w's goroutine.
 */
bool gt_registry_asleep_again(struct gt_waiter *w, uintptr_t futex);

/*
 * w's thread was in its wait until a timeout, and now begins to wait there again: w goes to the end
 * of the line. false: w was woken meanwhile, or the lock cannot be taken.
 */
bool gt_registry_renew(struct gt_waiter *w);

/*
 * Between lock and unlock the waiters at the address stay where they are. lock: false if it could
 * not be taken, which is counted (gt_lost).
 *
 * next: the waiter that a futex wake would reach now, or NULL; only waiters that share a bit with
 * `bits`. That is the first in line that was not woken yet, or a woken one that is still here after
 * longer than waking up takes. Another thread took the mutex first, and the woken one went back to
 * sleep. (It cannot have the mutex: the caller holds the mutex, and is giving it up.)
 *
 * woken: a wake has reached w. It goes to the end of the line, and into the mutex's line if it
 * needs the mutex.
 */
bool gt_registry_lock(const void *addr) __attribute__((warn_unused_result));
struct gt_waiter *gt_registry_next(const void *addr, uint32_t bits, uint64_t now);
void gt_registry_woken(struct gt_waiter *w, uint64_t now);

/*
 * With the lock held: as gt_registry_woken, but takes w out of the registry. For waiters whose wait
 * ends with the wake-up, when all at the address are woken, so that no waiter can be taken for
 * another. Then w's thread need not lock to leave, and thousands that run at once do not queue for
 * the lock. Nothing of w may be used afterwards.
 */
void gt_registry_release(struct gt_waiter *w, uint64_t now);

/*
 * Called by w's thread, or by the drain side, without the lock. false: w was never registered, or
 * was released.
 */
static inline bool gt_registry_has(const struct gt_waiter *w)
{
    return __atomic_load_n(&w->addr, __ATOMIC_ACQUIRE);
}
void gt_registry_unlock(const void *addr);

/*
 * The oldest waiter at the address that was not woken; with `last`, the next one after that. With
 * the lock held.
 */
struct gt_waiter *gt_registry_after(const void *addr, struct gt_waiter *last);

/*
 * How many waiters at the address were not woken. With the lock held. They are counted once for an
 * address that is asked for again and again, as a barrier's is.
 */
uint32_t gt_registry_asleep(const void *addr);

/* With the lock held: as gt_registry_add. */
void gt_registry_add_locked(struct gt_waiter *w, const void *addr, uint64_t now);

/*
 * FUTEX_REQUEUE: moves the first `max` waiters of `from` that were not woken to `to`. Does nothing
 * if a lock cannot be taken.
 */
void gt_registry_move(const void *from, const void *to, uint32_t max);

/*
 * Calls fn for every waiter, which cannot leave meanwhile. Leaves out waiters whose lock is not
 * free soon.
 */
void gt_registry_each(void (*fn)(const struct gt_waiter *waiter));

void gt_registry_after_fork(void);
