/*
 * Locks that somebody has waited for lately are hot, for a thousand times as long as that took: of
 * these it is noted how long they are held, and from where. A hold of 10 us that lets a waiter in,
 * or one of GOTRACE_HOLD_MIN, leaves a log on the row of who held it: "[held cache_lock, taken in
 * commit] 31.25ms, of it 29.01ms in fsync".
 *
 * A thread keeps its holds to itself; shared is a bit in a word that every unlock looks at anyway
 * (gt_registry_count), and those of a slot share it: a lock taken for hot costs time, no truth.
 *
 * To look at the clock costs more than to take a lock. A thread whose holds are all brief does that
 * for few of them; of the others is known since when somebody has waited ("1.20ms or longer").
 */
#ifndef GT_HOT_H
#define GT_HOT_H

#include "owner.h"
#include "registry.h"

enum { GT_HOLDS_MAX = 8 };

/* Of a thread; zeros to begin with. */
struct gt_holds {
    struct gt_hold {
        const void *lock;
        uint64_t since; /* 0: it was not looked at */
        bool longer;    /* it began before that */
        bool shared;    /* with other processes, as far as it is over */
        uint32_t epoch; /* in which the lock is hot */
        uintptr_t pc;   /* where it was called for; 0: not known */
        /* Since then, in the thread's waits and calls, as far as they are written. */
        uint64_t spent, longest;
        uint32_t longest_hook;
    } hold[GT_HOLDS_MAX];
    /* The only one, not looked at: hardly ever told of, so it is kept where that costs least. */
    struct gt_light_hold {
        const void *lock; /* NULL: there is none */
        uintptr_t pc;
        uint32_t epoch;
    } light;
    uint32_t in_use; /* of hold: a bit each */
    uint32_t next;   /* to be overwritten, where all are: one was given up elsewhere */
    uint32_t brief;  /* of those looked at, the last so many; more: of those that were not */
};

/* Somebody begins to wait for the lock, at that time; owner: as gt_owner_of had it. */
void gt_hot_touch(enum gt_lock_kind kind, const void *lock, uint64_t now, uint32_t owner);

/* And has waited for it, for so long. */
void gt_hot_waited(const void *lock, uint64_t since, uint64_t until);

static inline bool gt_hot_is(const void *lock)
{
    uint32_t word =
        atomic_load_explicit(&gt_registry_count[gt_registry_slot(lock)], memory_order_relaxed);
    return word & GT_REGISTRY_HOT;
}

/* Now, or 0: the hold that the caller has begun need not be looked at. */
uint64_t gt_hot_since(void);

/* The caller has the lock since then, a hot one, by a function that was called at pc. */
void gt_hot_taken(const void *lock, uint64_t since, const void *pc);

/* It is about to give it up. Whether nothing is to be told of that hold, as of most. */
bool gt_hot_passes(const void *lock);

/*
 * The same where that is not so, or not known. Whether gt_hot_given_up is to be called, with
 * *until, which is when, or 0 if nothing is to be told of that hold.
 */
bool gt_hot_until(const void *lock, uint64_t *until);

/*
 * It gave it up then, inside `hook`. If that ends waits (awaited), this comes before it: a trace
 * says who had a lock before it says that a wait for it is over. Else when it is given up, so that
 * nobody has to wait for this. shared: other processes may have the lock, too.
 */
void gt_hot_given_up(uint32_t hook, const void *lock, bool awaited, uint64_t until, bool shared);

/* It has the lock again, from within a call that gave it up: what waited before is another time. */
void gt_hot_forget(const void *lock);

/* What was noted may be over: calls have not come to us for a while. */
void gt_hot_reset(void);

/* The thread of these was in that wait or call from `since` to `until`. */
void gt_hot_spent(struct gt_holds *holds, uint32_t hook, uint64_t since, uint64_t until);

#endif
