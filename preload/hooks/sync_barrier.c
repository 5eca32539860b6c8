/*
 * Barriers: the last thread to arrive wakes all others. At a barrier that processes share, no
 * process knows all waiters. There libc's words say which thread is the last, unless two arrive at
 * the same time.
 */
#include "preload/bind/real.h"
#include "preload/shared/lock_kind.h"
#include "preload/waits/wait.h"

GT_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    enum gt_hook hook = GT_HOOK_pthread_barrier_wait;
    const struct gt_barrier *words = (const struct gt_barrier *)barrier;
    if (words->shared && gt_glibc_barrier_lacks_one(words)) {
        gt_wake_all(hook, barrier);
        gt_shared_wakes(hook, barrier, true);
        return gt_real.pthread_barrier_wait(barrier);
    }
    GT_WAIT(wait) = gt_wait_begin_for(
        &(struct gt_wait_for){.hook = hook,
                              .reason = GT_REASON_SYNC,
                              .addr = barrier,
                              .kind = words->shared ? GT_LOCK_BARRIER : GT_LOCK_NONE,
                              .count = words->count,
                              .final = true});
    return gt_real.pthread_barrier_wait(barrier);
}
