/* The part of a lock that may sleep; signals. See futex.h. */
#include "futex.h"

#include <signal.h>

long (*gt_syscall)(long number, ...) = syscall;

_Atomic bool gt_any_jumped;

void gt_lock_slow(struct gt_lock *lock)
{
    /* errno belongs to the program: a hook may come through here. */
    int saved = errno;
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        gt_futex_wait(&lock->word, 2, -1);
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

bool gt_lock_within(struct gt_lock *lock, int64_t ns)
{
    enum { SLICES = 10, PATIENCE = 1000, LEFT = 3 };
    if (gt_trylock(lock))
        return true;
    if (!ns || atomic_load_explicit(&lock->word, memory_order_relaxed) == LEFT)
        return false;
    int saved = errno, patience = PATIENCE;
    bool locked;
    while (!(locked = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) == 0) &&
           patience > 0) {
        errno = 0;
        gt_futex_wait(&lock->word, 2, ns / SLICES);
        patience -= impatience();
    }
    uint32_t held = 2;
    if (!locked && atomic_load_explicit(&gt_any_jumped, memory_order_relaxed))
        atomic_compare_exchange_strong_explicit(&lock->word, &held, LEFT, memory_order_relaxed,
                                                memory_order_relaxed);
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
