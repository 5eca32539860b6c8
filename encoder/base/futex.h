/*
 * Locks and waiting without libpthread: the tracer lives inside interposed pthread functions and
 * must never call one. Safe in signal handlers as long as the interrupted code of the same thread
 * does not hold the lock (preload's guard sees to that). Initial state: all zero.
 */
#pragma once

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
 * Waits while *word == expected; timeout_ns is relative, -1 for none. Spurious returns happen.
 * gt_futex_wait_for_lock is for locks: a lock holder waits for no other thread. For anything else
 * the caller must not have pinned a generation, because the waker may wait for the unpin.
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
 * 0 = free. 1 = held. 2 = held, and a waiter may sleep. 3 = held, perhaps for ever: a waiter gave
 * up while gt_any_jumped was set. 4 = held, and a waiter has waited long enough that was urgent
 * (urgent.h) or that a standing thread may have kept waiting.
 */
struct gt_lock {
    _Atomic uint32_t word;
};

/*
 * Whether a thread has left our code in the middle, perhaps with a lock that it will never release.
 */
extern _Atomic bool gt_any_jumped;

/*
 * How many threads a signal handler keeps in the middle of our code while it waits: so do garbage
 * collectors that stop threads by signals. What these threads hold does not become free while the
 * collector runs, and the collector's own threads must not wait for it.
 */
extern _Atomic uint32_t gt_standing;

/* How long a hook waits for something that a standing thread may hold. */
#define GT_STANDING_PATIENCE_NS 1000000

static inline bool gt_any_stands(void)
{
    return __builtin_expect(atomic_load_explicit(&gt_standing, memory_order_relaxed) != 0, 0);
}

static inline bool gt_lock_at_once(struct gt_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void gt_lock_slow(struct gt_lock *lock);
bool gt_lock_within_slow(struct gt_lock *lock, int64_t ns);

/* rank: the lock's rank, see debug.h. gt_trylock may ignore their order, as it does not wait. */
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
 * Locks within `ns`, for hooks. The lock holder may have been suspended by a garbage collector that
 * stops threads with a signal and then waits in a hook of ours itself. false: the lock did not
 * become free in time, or an earlier waiter found it lost (3 above).
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
 * The `ns` of a hook that can do without the lock: GT_LOCK_PATIENCE_NS. A tenth of that once a
 * thread has jumped, which then is the likelier reason; GT_STANDING_PATIENCE_NS while a thread
 * stands. An urgent thread only spins for a moment.
 */
#define GT_HOOK_PATIENCE_NS (-1)

/*
 * Between hold and release the calling thread runs no signal handler, which might stay there or
 * jump, and is not cancelled. Faults still arrive. hold returns what release needs. errno is kept.
 */
uint64_t gt_signals_hold(void);
void gt_signals_release(uint64_t before);

/*
 * Between begin and end our writes raise no SIGPIPE or SIGXFSZ in the program's thread that runs
 * our code. Uses system calls only; signal sets have the kernel's form.
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
