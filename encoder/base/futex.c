/* The part of a lock that may sleep; signals. See futex.h. */
#include "futex.h"

#include "encoder/base/arch/arch.h"
#include "urgent.h"

#include <signal.h>

_Atomic bool gt_any_jumped;
_Atomic uint32_t gt_standing;

enum { LEFT = 3, GIVEN_UP = 4 };

/*
 * Spins for some 2 us. Our locks are held for less time than sleeping and waking take: three system
 * calls and two context switches. A holder that has lost its CPU is not worth waiting for here.
 */
static bool lock_soon(struct gt_lock *lock)
{
    enum { TIMES = 50 };
    for (int i = 0; i < TIMES; i++) {
        gt_arch_pause();
        uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (held == LEFT || held == GIVEN_UP)
            return false;
        if (!held && gt_lock_at_once(lock))
            return true;
    }
    return false;
}

/*
 * Spins for an urgent thread. That helps if the lock holder is more urgent than the caller, or runs
 * on another CPU. Otherwise only sleeping helps.
 */
static bool lock_awake(struct gt_lock *lock)
{
    enum { TIMES = 1000 };
    gt_urgent_lend();
    uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed);
    for (int i = 0; i < TIMES && held != GIVEN_UP; i++) {
        if (gt_lock_at_once(lock))
            return true;
        gt_arch_pause();
        held = atomic_load_explicit(&lock->word, memory_order_relaxed);
    }
    if (held == 1 || held == 2)
        atomic_compare_exchange_strong_explicit(&lock->word, &held, GIVEN_UP, memory_order_relaxed,
                                                memory_order_relaxed);
    return gt_lock_at_once(lock);
}

void gt_lock_slow(struct gt_lock *lock)
{
    if (lock_soon(lock))
        return;
    /* errno belongs to the program: a hook may come through here. */
    int saved = errno;
    bool locked = gt_urgent() && lock_awake(lock);
    while (!locked && atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        gt_futex_wait_for_lock(&lock->word, 2, -1);
    errno = saved;
}

/*
 * What a wait costs of the waiter's patience. A waiter that was woken too late, after another
 * thread took the lock, has no reason to give up: the lock moves. It costs a little, so that there
 * is an end.
 */
static int impatience(void)
{
    enum { TIMED_OUT = 100, LATE = 1 };
    return errno == ETIMEDOUT ? TIMED_OUT : LATE;
}

/*
 * Lets other threads run before the caller sleeps. A holder that has lost its CPU among thousands
 * of threads comes back meanwhile. Threads that sleep for the lock would be woken one after the
 * other, each long after another thread has taken the lock.
 */
static bool lock_after_others(struct gt_lock *lock)
{
    enum { TIMES = 8 };
    for (int i = 0; i < TIMES; i++) {
        uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (held == LEFT || held == GIVEN_UP)
            return false;
        gt_syscall(SYS_sched_yield);
        if (gt_lock_at_once(lock))
            return true;
    }
    return false;
}

static bool lock_asleep(struct gt_lock *lock, int64_t ns, bool hook)
{
    enum { SLICES = 10, PATIENCE = 1000 };
    if (lock_after_others(lock))
        return true;
    int patience = PATIENCE;
    bool locked, stood = false;
    while (!(locked = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) == 0) &&
           patience > 0 && !stood) {
        bool stands = hook && gt_any_stands();
        errno = 0;
        gt_futex_wait_for_lock(&lock->word, 2, stands ? GT_STANDING_PATIENCE_NS : ns / SLICES);
        stood = stands && errno == ETIMEDOUT;
        patience -= impatience();
    }
    bool jumped = atomic_load_explicit(&gt_any_jumped, memory_order_relaxed);
    uint32_t held = 2;
    if (!locked && (stood || jumped))
        atomic_compare_exchange_strong_explicit(&lock->word, &held, stood ? GIVEN_UP : LEFT,
                                                memory_order_relaxed, memory_order_relaxed);
    return locked;
}

static int64_t hook_patience_ns(void)
{
    bool jumped = atomic_load_explicit(&gt_any_jumped, memory_order_relaxed);
    return jumped ? GT_LOCK_PATIENCE_NS / 10 : GT_LOCK_PATIENCE_NS;
}

bool gt_lock_within_slow(struct gt_lock *lock, int64_t ns)
{
    bool hook = ns == GT_HOOK_PATIENCE_NS;
    uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed);
    if (!ns || held == LEFT || (held == GIVEN_UP && hook && gt_any_stands()))
        return false;
    if (lock_soon(lock))
        return true;
    int saved = errno;
    bool urgent = gt_urgent();
    bool locked = urgent && lock_awake(lock);
    if (!locked && !(urgent && hook))
        locked = lock_asleep(lock, hook ? hook_patience_ns() : ns, hook);
    errno = saved;
    return locked;
}

uint64_t gt_signals_hold(void)
{
    static const uint64_t faults = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) | 1u << (SIGFPE - 1) |
                                   1u << (SIGILL - 1) | 1u << (SIGTRAP - 1) | 1u << (SIGSYS - 1);
    uint64_t others = ~faults, before = 0;
    gt_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &others, &before, sizeof before);
    return before;
}

void gt_signals_release(uint64_t before)
{
    gt_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

void gt_quiet_begin(struct gt_quiet *q)
{
    uint64_t ours = 1u << (SIGPIPE - 1) | 1u << (SIGXFSZ - 1);
    gt_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &q->mask, sizeof q->mask);
    gt_syscall(SYS_rt_sigpending, &q->pending, sizeof q->pending);
    q->ours = ours & ~q->pending;
}

void gt_quiet_end(struct gt_quiet *q)
{
    static const struct timespec now = {0, 0};
    int saved = errno;
    while (gt_syscall(SYS_rt_sigtimedwait, &q->ours, NULL, &now, sizeof q->ours) > 0)
        ;
    gt_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &q->mask, NULL, sizeof q->mask);
    errno = saved;
}
