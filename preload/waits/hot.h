/*
 * Hold times of contended locks. A lock is hot while a thread waits for it, and for a while after a
 * wait of 10 us or more: 1,000 times the length of that wait. A lock other than a mutex or a
 * read-write lock is hot for 10 ms or more after any wait begins. Threads note how long they hold
 * hot locks, and where they took them. A hold of GOTRACE_HOLD_MIN leaves a log on the holder's row,
 * such as "[held cache_lock, taken in commit] 31.25ms, of it 29.01ms in fsync". So does a hold of
 * 10 us whose end lets a waiter in.
 *
 * Each thread keeps its holds to itself. Threads share only a bit in a word that every unlock reads
 * anyway (gt_registry_count). The locks of a slot have that bit in common: a lock that is taken for
 * hot by mistake costs time, but the trace stays true.
 *
 * Reading the clock costs more than taking a lock. A thread whose holds are all brief times only a
 * few of them, and those that begin while a thread waits. For its other holds the trace says how
 * long another thread waited ("1.20ms or longer").
 */
#pragma once

#include "encoder/base/clock.h"
#include "preload/registry/registry.h"
#include "preload/thread/thread.h"

/*
 * The heat of a slot's locks. Each slot has a cache line of its own, as all CPUs use a contended
 * lock. If a holder has not noted when its hold began, the record of the first waiter tells since
 * when there was one.
 */
extern struct gt_heat {
    _Alignas(64) _Atomic uint64_t until; /* until when the slot's locks are hot */
    _Atomic uint64_t since;              /* when the first waiter began to wait for `lock` */
    _Atomic(const void *) lock;          /* which `owner` holds */
    _Atomic uint32_t owner; /* the kernel's number of a thread; 0: there is no record */
    _Atomic uint32_t epoch; /* how often the slot cooled: older holds may be over */
} gt_heats[GT_REGISTRY_SLOTS];

static inline struct gt_heat *gt_heat_of(const void *lock)
{
    return &gt_heats[gt_registry_slot(lock)];
}

/* A thread begins to wait for the lock at `now`. owner: what gt_owner_of has returned for it. */
void gt_hot_touch(enum gt_lock_kind kind, const void *lock, uint64_t now, uint32_t owner);

/* That thread has waited from `since` to `until`. */
void gt_hot_waited(const void *lock, uint64_t since, uint64_t until);

static inline bool gt_hot_is(const void *lock)
{
    return gt_registry_word(lock) & GT_REGISTRY_HOT;
}

/* Makes the lock cool, if its time as a hot lock is over and no thread waits for it. */
void gt_hot_cool(const void *lock);

/*
 * The caller has taken a hot lock at `since` (0: not timed), by a function that was called at pc.
 */
void gt_hot_taken(const void *lock, uint64_t since, const void *pc);

/* Whether another thread waits for the hold that the thread has, or has just given up. */
static inline bool gt_hot_is_waited_for(const void *lock, uint32_t tid)
{
    /*
     * seq_cst: this load must not move before the release of the lock, as an acquire load might.
     * Pairs with note_waiter.
     */
    struct gt_heat *h = gt_heat_of(lock);
    return atomic_load(&h->owner) == tid &&
           atomic_load_explicit(&h->lock, memory_order_relaxed) == lock;
}

/*
 * Whether the caller must time its next hold of a hot lock. After BRIEF brief holds in a row only
 * one in EVERY holds is timed. To be called once for each hold: it counts them.
 */
static inline bool gt_hot_times(void)
{
    enum { BRIEF = 64, EVERY = 64 };
    struct gt_thread *t = gt_self;
    return !t || t->holds.brief < BRIEF || ++t->holds.brief % EVERY == 0;
}

/*
 * A light hold is one that is hardly ever logged. It is timed only if a thread waits already. The
 * caller notes the hold before it tries to take the hot lock, so that the note makes no hold
 * longer. After the release the caller looks whether another thread waited.
 *
 * - note_light: NULL: nothing is noted. If the caller gets the lock, it must call gt_hot_taken.
 * - settle_light: the caller has tried. begins: its hold has begun. If a thread waits for the lock,
 *   the hold is timed, because its end lets that thread in. !begins: the try failed, or the caller
 *   had the lock before; the note is forgotten.
 * - is_light: the caller's hold of the lock is noted as light.
 * - passes: the caller gives the lock up, or has just done so. true: there is nothing to log of its
 *   hold, as of most; the hold is forgotten.
 */
static inline struct gt_light_hold *gt_hot_note_light(const void *lock, const void *pc)
{
    struct gt_thread *t = gt_self;
    struct gt_light_hold *light = t ? &t->holds.light : NULL;
    if (!t || light->lock || t->holds.in_use || t->inside || gt_hot_is_waited_for(lock, t->w.m))
        return NULL;
    /* Of a signal handler that locks in between, and finds the hold, a log names no place. */
    light->pc = 0;
    light->since = 0;
    light->epoch = atomic_load_explicit(&gt_heat_of(lock)->epoch, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    light->lock = lock;
    atomic_signal_fence(memory_order_seq_cst);
    light->pc = (uintptr_t)pc;
    return light;
}

static inline void gt_hot_settle_light(struct gt_light_hold *light, const void *lock, bool begins)
{
    if (light->lock == lock && !begins)
        light->lock = NULL;
    else if (light->lock == lock && gt_registry_waits(lock))
        light->since = gt_clock_now();
}

static inline bool gt_hot_is_light(const void *lock)
{
    return gt_self && gt_self->holds.light.lock == lock;
}

static inline bool gt_hot_passes(const void *lock)
{
    if (!gt_hot_is_light(lock) || gt_hot_is_waited_for(lock, gt_self->w.m))
        return false;
    gt_self->holds.light.lock = NULL;
    return true;
}

/*
 * The caller is about to give the lock up, and gt_hot_passes is false or was not asked. true: the
 * caller must call gt_hot_given_up, with *until: when the hold ends, or 0 if it need not be logged.
 */
bool gt_hot_until(const void *lock, uint64_t *until);

/*
 * The caller gives the lock up at `until`, inside `hook`. awaited: that ends waits. Then this call
 * comes before the real unlock: a trace names a lock's holder before it says that a wait for the
 * lock is over. Otherwise an unlock's hook makes this call after the real unlock, so that no thread
 * has to wait for it. shared: other processes may have the lock, too.
 */
void gt_hot_given_up(uint32_t hook, const void *lock, bool awaited, uint64_t until, bool shared);

/*
 * The two halves of gt_hot_given_up for a lock whose ends are not all seen. Inside the guard.
 *
 * - noted: the hold of t's thread, which is forgotten. false: none was noted, or it may be over.
 * - ends: the hold, which need not be one that was noted, ends waits.
 */
bool gt_hot_noted(struct gt_thread *t, const void *lock, struct gt_hold *hold);
void gt_hot_ends(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold, uint64_t until);

/*
 * A condition variable's wait has reacquired the mutex: forgets which thread waited for the
 * previous hold, so that its wait is not charged to the new hold.
 */
void gt_hot_forget(const void *lock);

/* Logs a hold of t's thread, inside the guard, which is over now and is not one of t's. */
void gt_hot_tell(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold);

/* Holds noted so far may be over: unlocks have not come to our hooks for a while. */
void gt_hot_reset(void);

/* The thread with these holds was in a wait or call of `hook` from `since` to `until`. */
void gt_hot_spent(struct gt_holds *holds, uint32_t hook, uint64_t since, uint64_t until);
