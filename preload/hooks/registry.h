/*
 * Who waits where: address → threads, oldest first, as futex queues are. A thread that is about to
 * block registers; whoever is about to end a wait at the address looks there first.
 *
 * gt_registry_any is the whole cost of an unlock that nobody waits for: one load. It may miss a
 * thread that is registering at this moment; that one then unblocks itself in the trace.
 *
 * Any thread; signal handlers under the guard of thread.h.
 */
#ifndef GT_REGISTRY_H
#define GT_REGISTRY_H

#include "encoder/base/futex.h"

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
    uint8_t kind;   /* enum gt_lock_kind: what is at addr */
    bool timed;     /* the wait ends by itself */
    bool again;     /* the second entry of a condition variable's waiter, see relock */
    bool final;     /* being woken once is the end of the wait: never asleep again before that */
    uint64_t turn;  /* in its shard: a lower one is to be woken before */
    bool outrun;    /* it was not the one that was woken last: see gt_registry_remove */
    /*
     * A condition variable's waiter must still get its mutex after it was woken: then it becomes
     * a waiter of the mutex too, through this second entry. NULL in others.
     */
    struct gt_waiter *relock;
    const void *mutex;
};

#define GT_REGISTRY_SLOTS 4096u
/* Beside the number: see hot.h, signalled.h. */
#define GT_REGISTRY_HOT (1u << 31)
#define GT_REGISTRY_COND (1u << 30)
extern _Atomic uint32_t gt_registry_count[GT_REGISTRY_SLOTS];

static inline uint32_t gt_registry_slot(const void *addr)
{
    return (uint32_t)(((uintptr_t)addr * 0x9e3779b97f4a7c15u) >> 52);
}

static inline bool gt_registry_any(const void *addr)
{
    return atomic_load_explicit(&gt_registry_count[gt_registry_slot(addr)], memory_order_relaxed) !=
           0;
}

/* Whether somebody waits at the address, or another one of its slot. */
static inline bool gt_registry_waits(const void *addr)
{
    uint32_t beside = GT_REGISTRY_HOT | GT_REGISTRY_COND;
    return atomic_load_explicit(&gt_registry_count[gt_registry_slot(addr)], memory_order_relaxed) &
           ~beside;
}

/*
 * Between the moment in which the only waiter is woken and the one in which it runs, a mutex may be
 * unlocked a thousand times. all_woken: all waiters at the address were woken already. reaches:
 * a wake would reach one now, if only one that must have gone back to sleep. Both take the other
 * addresses of the slot for this one. No lock; reaches looks at the clock.
 */
bool gt_registry_all_woken(const void *addr);
bool gt_registry_reaches(const void *addr);

/* Whether there is somebody whom a wake would reach. */
static inline bool gt_registry_awaits(const void *addr)
{
    return gt_registry_waits(addr) && gt_registry_reaches(addr);
}

/* After the block event is written; nothing happens when the lock is not to be had (gt_lost). w->g
 * to mutex are set but for times; now: trace time. */
void gt_registry_add(struct gt_waiter *w, const void *addr, uint64_t now);

/*
 * After the real call has returned. Who slept, and was not woken by anybody here, was taken for
 * another one: the kernel's line is not in the order in which threads came to us. That one sleeps,
 * and is the first in line. Nobody refers to w or its goroutine afterwards; unless false,
 * the lock was not to be had (gt_lock_within): then w must stay and nothing be written for its
 * goroutine.
 */
bool gt_registry_remove(struct gt_waiter *w, int64_t patience_ns)
    __attribute__((warn_unused_result));

/*
 * Between lock and unlock the waiters of the address stay where they are. lock: false when it was
 * not to be had, which is counted (gt_lost).
 *
 * next: whom a futex wake would reach now, or NULL. That is the first in line not yet woken; or
 * one that was, but is still here after longer than waking up takes: another thread was faster to
 * the mutex, and it went back to sleep. (It cannot have the mutex: the caller, who is giving it
 * up, has.) Only those that share a bit with `bits`.
 *
 * woken: it was reached; it goes to the end of the line, and to the mutex's if it needs that.
 */
bool gt_registry_lock(const void *addr) __attribute__((warn_unused_result));
struct gt_waiter *gt_registry_next(const void *addr, uint32_t bits, uint64_t now);
void gt_registry_woken(struct gt_waiter *w, uint64_t now);

/*
 * With the lock held: the same of one whose wait that is the end of, when all at the address are
 * woken, so that nobody can be taken for another one. It is out of the registry: thousands of
 * threads that run at once then do not queue for the lock. Nothing of w may be used afterwards.
 */
void gt_registry_release(struct gt_waiter *w, uint64_t now);

/* By w's thread, without the lock. false: it was never in, or is out again, released. */
static inline bool gt_registry_has(const struct gt_waiter *w)
{
    return __atomic_load_n(&w->addr, __ATOMIC_ACQUIRE);
}
void gt_registry_unlock(const void *addr);

/* The oldest waiter at the address, locked, that was not woken; or the next one after `last`. */
struct gt_waiter *gt_registry_after(const void *addr, struct gt_waiter *last);

/* Waiters at the address, locked, that were not woken. Counted once for an address that is asked
 * for again and again, as a barrier is. */
uint32_t gt_registry_asleep(const void *addr);

/* With the lock held: as gt_registry_add. */
void gt_registry_add_locked(struct gt_waiter *w, const void *addr, uint64_t now);

/* FUTEX_REQUEUE: the first `max` waiters of `from` that were not woken wait at `to` now, unless a
 * lock is not to be had. */
void gt_registry_move(const void *from, const void *to, uint32_t max);

/* Every waiter, while it cannot leave; but for those whose locks are not to be had soon. */
void gt_registry_each(void (*fn)(const struct gt_waiter *waiter));

void gt_registry_after_fork(void);

#endif
