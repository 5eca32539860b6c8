/* The part of a lock that may sleep; signals. See futex.h. */
#include "futex.h"

#include <signal.h>

long (*gt_syscall)(long number, ...) = syscall;

void gt_lock_slow(struct gt_lock *lock)
{
    /* errno belongs to the program: a hook may come through here. */
    int saved = errno;
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        gt_futex_wait(&lock->word, 2, -1);
    errno = saved;
}

bool gt_lock_within(struct gt_lock *lock, int64_t ns)
{
    enum { SLICES = 10 };
    if (gt_trylock(lock))
        return true;
    int saved = errno;
    bool locked = false;
    for (int i = 0; i < SLICES && ns && !locked; i++) {
        locked = atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) == 0;
        if (!locked)
            gt_futex_wait(&lock->word, 2, ns / SLICES);
    }
    errno = saved;
    return locked || (ns && atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) == 0);
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
