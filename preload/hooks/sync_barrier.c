/*
 * Barriers: the last thread to arrive wakes all others. At one that processes share no process
 * knows all who wait, but libc's words say who is the last one, unless two arrive at the same time.
 */
#include "wait.h"

static bool is_complete_with(const struct gt_barrier *barrier)
{
    uint32_t come = __atomic_load_n(&barrier->come, __ATOMIC_RELAXED);
    return come + 1 - __atomic_load_n(&barrier->round, __ATOMIC_RELAXED) == barrier->count;
}

GT_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    enum gt_hook hook = GT_HOOK_pthread_barrier_wait;
    const struct gt_barrier *words = (const struct gt_barrier *)barrier;
    if (words->shared && is_complete_with(words)) {
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
