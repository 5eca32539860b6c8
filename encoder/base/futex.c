/* The part of a lock that may sleep; signals. See futex.h. */
#include "futex.h"

#include "arch/arch.h"
#include "urgent.h"

#include <signal.h>

long (*gt_syscall)(long number, ...) = syscall;

_Atomic bool gt_any_jumped;

enum { LEFT = 3, GIVEN_UP = 4 };

/*
 * Our locks are held for less than it takes to go to sleep and be woken: three calls into the
 * kernel and two switches. Some 2 us; a holder that lost its CPU is not waited for.
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

/* Whoever has it may be more urgent, or on another CPU; else nothing helps but to sleep. */
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
 * Being woken and late, another thread has it again, is no reason to give up: the lock moves. It
 * costs a little of the patience, so that there is an end.
 */
static int impatience(void)
{
    enum { TIMED_OUT = 100, LATE = 1 };
    return errno == ETIMEDOUT ? TIMED_OUT : LATE;
}

static bool lock_asleep(struct gt_lock *lock, int64_t ns)
{
    enum { SLICES = 10, PATIENCE = 1000 };
    int patience = PATIENCE;
    bool locked;
    while (!(locked = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) == 0) &&
           patience > 0) {
        errno = 0;
        gt_futex_wait_for_lock(&lock->word, 2, ns / SLICES);
        patience -= impatience();
    }
    uint32_t held = 2;
    if (!locked && atomic_load_explicit(&gt_any_jumped, memory_order_relaxed))
        atomic_compare_exchange_strong_explicit(&lock->word, &held, LEFT, memory_order_relaxed,
                                                memory_order_relaxed);
    return locked;
}

static int64_t hook_patience_ns(void)
{
    bool jumped = atomic_load_explicit(&gt_any_jumped, memory_order_relaxed);
    return jumped ? GT_LOCK_PATIENCE_NS / 10 : GT_LOCK_PATIENCE_NS;
}

bool gt_lock_within_slow(struct gt_lock *lock, int64_t ns)
{
    if (!ns || atomic_load_explicit(&lock->word, memory_order_relaxed) == LEFT)
        return false;
    if (lock_soon(lock))
        return true;
    int saved = errno;
    bool hook = ns == GT_HOOK_PATIENCE_NS, urgent = gt_urgent();
    bool locked = urgent && lock_awake(lock);
    if (!locked && !(urgent && hook))
        locked = lock_asleep(lock, hook ? hook_patience_ns() : ns);
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
