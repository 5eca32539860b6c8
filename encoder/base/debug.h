/*
 * The rules of concurrency, as `make debug` checks them; without GT_DEBUG nothing here costs
 * anything. A rule that is broken is said on standard error, and the process ends by SIGTRAP.
 *
 * - Locks are taken in the order of their ranks.
 * - A thread that has pinned a generation (writer.h, rule 1) does not sleep but for a lock.
 * - What is for the drain side alone, or for a writer's owner, is called by no other thread.
 * - Our code calls no hook of ours: no malloc, no lock of libpthread, no stdio, no wait.
 * - The rules of writer.h, by their numbers.
 *
 * Any context. errno is kept.
 */
#ifndef GT_DEBUG_H
#define GT_DEBUG_H

#include <stdbool.h>

/* Each may be taken by whoever has some of those before it, never by one who has a later one. */
enum gt_rank {
    GT_RANK_CLIENT,  /* drain.c: who commands the drain side */
    GT_RANK_SIDE,    /* drain.c: who is the drain side */
    GT_RANK_MET,     /* preload/met.c: a thread that was there before us */
    GT_RANK_KEY,     /* thread.c: the key of threads' ends */
    GT_RANK_SIGNALS, /* signals.c: a taken signal's action */
    GT_RANK_SHARD,   /* registry.c: by their addresses where it takes two */
    GT_RANK_G,       /* writer.h: a goroutine's state */
    GT_RANK_STRINGS, /* strings.c: the table */
    GT_RANK_LOADING, /* elfutils.c: while it is loaded */
    GT_RANK_MODULES, /* modules.c: the map */
    GT_RANKS_END
};

#ifdef GT_DEBUG

_Noreturn void gt_debug_broken(const char *rule, const char *what, const char *file, int line);

#define GT_ASSERT(rule, condition) \
    ((condition) ? (void)0 : gt_debug_broken(rule, #condition, __FILE__, __LINE__))

/* The caller is about to wait for a lock; has it; gives it back. */
void gt_debug_lock(const void *lock, enum gt_rank rank);
void gt_debug_locked(const void *lock, enum gt_rank rank);
void gt_debug_unlock(const void *lock);

/* The caller has pinned a generation by this writer, NULL: by none. */
void gt_debug_pin(const void *writer);

/*
 * The caller leaves our code in the middle, by a jump or its end, and has what it has for ever; or
 * it is a forked child, and has none of it.
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

/* Only asked in a GT_ASSERT. */
bool gt_debug_has_lock(const void *lock);
bool gt_debug_has_rank(enum gt_rank rank);
const void *gt_debug_pinned(void);

#define GT_ASSERT_DRAIN_SIDE() \
    GT_ASSERT("what is for the drain side alone", gt_debug_has_rank(GT_RANK_SIDE))

#endif
