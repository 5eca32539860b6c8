/*
 * The rules of concurrency, as `make debug` checks them; without GT_DEBUG nothing here costs
 * anything. A broken rule is reported on standard error and ends the process by SIGTRAP.
 *
 * - Locks are taken in the order of their ranks.
 * - A thread that has pinned a generation (writer.h, rule 1) sleeps only to wait for a lock.
 * - Functions of the drain side, and those of a writer's owner, are called by no other thread.
 * - Our code calls no hook of ours: no malloc, no lock of libpthread, no stdio, no wait.
 * - The rules of writer.h, by their numbers.
 *
 * Any context. errno is kept.
 */
#pragma once

#include <stdbool.h>

/*
 * The ranks of locks, in the order in which a thread may take them. A thread that holds a lock
 * takes none of an earlier rank.
 */
enum gt_rank {
    GT_RANK_CLIENT,  /* drain.c: the thread that commands the drain side */
    GT_RANK_SIDE,    /* drain.c: the thread that is the drain side */
    GT_RANK_MET,     /* preload/life/met.c: a thread that existed before the tracer */
    GT_RANK_KEY,     /* thread.c: the key for the ends of threads */
    GT_RANK_SIGNALS, /* signals.c: the action of a signal that the tracer uses */
    GT_RANK_SHARD,   /* registry.c: two of them in the order of their addresses */
    GT_RANK_G,       /* writer.h: a goroutine's state */
    GT_RANK_STRINGS, /* strings.c: the table */
    GT_RANK_LOADING, /* elfutils.c: while elfutils is loaded */
    GT_RANK_MODULES, /* modules.c: the map */
    GT_RANKS_END
};

#ifdef GT_DEBUG

_Noreturn void gt_debug_broken(const char *rule, const char *what, const char *file, int line);

#define GT_ASSERT(rule, condition) \
    ((condition) ? (void)0 : gt_debug_broken(rule, #condition, __FILE__, __LINE__))

/* The caller is about to wait for the lock, has acquired it, or is about to release it. */
void gt_debug_lock(const void *lock, enum gt_rank rank);
void gt_debug_locked(const void *lock, enum gt_rank rank);
void gt_debug_unlock(const void *lock);

/* The caller has pinned a generation through `writer`; NULL: it has unpinned. */
void gt_debug_pin(const void *writer);

/*
 * Forgets all locks and pins of the caller. It has left our code in the middle, by a jump or by its
 * end, and will never release them. Or it is a forked child, which holds none of them.
 */
void gt_debug_abandon(void);

#else

#define GT_ASSERT(rule, condition) ((void)(0 && (condition)))

#define gt_debug_lock(lock, rank) ((void)(lock), (void)(rank))
#define gt_debug_locked(lock, rank) ((void)(lock), (void)(rank))
#define gt_debug_unlock(lock) ((void)(lock))
#define gt_debug_pin(writer) ((void)(writer))
#define gt_debug_abandon() ((void)0)

#endif

/* For conditions of GT_ASSERT only. */
bool gt_debug_has_lock(const void *lock);
bool gt_debug_has_rank(enum gt_rank rank);
const void *gt_debug_pinned(void);

#define GT_ASSERT_DRAIN_SIDE() \
    GT_ASSERT("what is for the drain side alone", gt_debug_has_rank(GT_RANK_SIDE))
