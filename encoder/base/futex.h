/*
 * Locks and waiting without libpthread: the tracer lives inside interposed pthread functions and
 * must never call one. Safe in signal handlers as long as the interrupted code of the same thread
 * does not hold the lock (preload's guard sees to that). Initial state: all zero.
 */
#ifndef GT_FUTEX_H
#define GT_FUTEX_H

#include "debug.h"
#include "libc.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/*
 * syscall(2) of libc, reached through a pointer because `syscall` itself may be interposed by the
 * program's other preloads; preload/ points it at the real one. errno is the caller's to save.
 */
extern long (*gt_syscall)(long number, ...);

/*
 * Waits while *word == expected; relative timeout in ns, or -1 for none. Spurious returns happen.
 * wait_for_lock: whoever has a lock waits for nobody; for anything else the caller has pinned no
 * generation, which whoever is to wake it may wait for.
 */
static inline void gt_futex_wait_for_lock(_Atomic uint32_t *word, uint32_t expected,
                                          int64_t timeout_ns)
{
    struct timespec ts = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    gt_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &ts);
}

static inline void gt_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    GT_ASSERT("busy threads do not sleep", !gt_debug_pinned());
    gt_futex_wait_for_lock(word, expected, timeout_ns);
}

static inline void gt_futex_wake(_Atomic uint32_t *word, int count)
{
    gt_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count);
}

/*
 * 0 = free, 1 = held, 2 = held and somebody may sleep, 3 = held, perhaps for ever: waited for in
 * vain when gt_any_jumped; 4 = held, and an urgent thread has waited long enough (urgent.h).
 */
struct gt_lock {
    _Atomic uint32_t word;
};

/* Whether a thread has left our code in the middle, perhaps with a lock that nobody gives back. */
extern _Atomic bool gt_any_jumped;

static inline bool gt_lock_at_once(struct gt_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void gt_lock_slow(struct gt_lock *lock);
bool gt_lock_within_slow(struct gt_lock *lock, int64_t ns);

/* rank: of the lock, see debug.h. Whoever does not wait may take it in any order. */
static inline bool gt_trylock(struct gt_lock *lock, enum gt_rank rank)
{
    bool locked = gt_lock_at_once(lock);
    if (locked)
        gt_debug_locked(lock, rank);
    return locked;
}

static inline void gt_lock(struct gt_lock *lock, enum gt_rank rank)
{
    gt_debug_lock(lock, rank);
    if (!gt_lock_at_once(lock))
        gt_lock_slow(lock);
    gt_debug_locked(lock, rank);
}

/*
 * In hooks: whoever holds the lock may have been suspended, by a collector that stops its threads
 * with a signal and now waits in a hook of ours itself. false: not free within so many ns;
 * or it has not been when somebody waited before, and will not be.
 */
#define GT_LOCK_PATIENCE_NS 1000000000
static inline bool gt_lock_within(struct gt_lock *lock, enum gt_rank rank, int64_t ns)
{
    gt_debug_lock(lock, rank);
    bool locked = gt_lock_at_once(lock) || gt_lock_within_slow(lock, ns);
    if (locked)
        gt_debug_locked(lock, rank);
    return locked;
}

/*
 * For a hook that does without: the same; less where a thread has jumped, which is the likelier
 * reason then; and a moment, awake, for an urgent thread.
 */
#define GT_HOOK_PATIENCE_NS (-1)

/*
 * Between hold and release no signal handler comes to the calling thread, which might stay there or
 * jump; nor does it end by cancellation. hold returns what release wants. errno is kept.
 */
uint64_t gt_signals_hold(void);
void gt_signals_release(uint64_t before);

/*
 * Between begin and end nothing that we write becomes a SIGPIPE or SIGXFSZ of the program's, in
 * whose thread we are. Own system calls only; sets of signals as the kernel has them.
 */
struct gt_quiet {
    uint64_t mask, pending, ours;
};
void gt_quiet_begin(struct gt_quiet *q);
void gt_quiet_end(struct gt_quiet *q);

static inline void gt_unlock(struct gt_lock *lock)
{
    gt_debug_unlock(lock);
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) >= 2)
        gt_futex_wake(&lock->word, 1);
}

#endif
