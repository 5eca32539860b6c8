/*
 * Locks that somebody has waited for lately are hot: of these it is noted how long they are held,
 * and from where. A hold of 10 us that lets a waiter in, or one of GOTRACE_HOLD_MIN, leaves a log
 * on the row of who held it: "[held cache_lock, taken in commit] 31.25ms, of it 29.01ms in fsync".
 *
 * A thread keeps its holds to itself; shared is a bit in a word that every unlock looks at anyway
 * (gt_registry_count), and those of a slot share it: a lock taken for hot costs time, no truth.
 */
#ifndef GT_HOT_H
#define GT_HOT_H

#include "registry.h"

enum { GT_HOLDS_MAX = 8 };

/* Of a thread; zeros to begin with. */
struct gt_holds {
    struct gt_hold {
        const void *lock; /* NULL: free */
        uint64_t since;
        uintptr_t pc; /* where it was called for; 0: not known, nor when, but not later */
        uint64_t
            spent; /* since then, in the thread's waits and calls, as far as they are written */
        uint64_t longest;
        uint32_t longest_hook;
    } hold[GT_HOLDS_MAX];
    uint32_t next; /* to be overwritten, where all are in use: one was given up elsewhere */
};

/* Somebody begins to wait for the lock, at that time; owner: as gt_owner_of has it. */
void gt_hot_touch(const void *lock, uint64_t now, uint32_t owner);

static inline bool gt_hot_is(const void *lock)
{
    uint32_t word =
        atomic_load_explicit(&gt_registry_count[gt_registry_slot(lock)], memory_order_relaxed);
    return word & GT_REGISTRY_HOT;
}

/* The caller has the lock now, a hot one, by a function that was called at pc. */
void gt_hot_taken(const void *lock, const void *pc);

/* It is about to give it up, inside `hook`: before that ends waits, which it does if awaited. */
void gt_hot_given_up(uint32_t hook, const void *lock, bool awaited);

/* The thread of these was in that wait or call from `since` to `until`. */
void gt_hot_spent(struct gt_holds *holds, uint32_t hook, uint64_t since, uint64_t until);

#endif
