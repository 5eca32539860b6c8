/*
 * Condition variables. A wait always blocks (or fails at once, which shows as a wait of no
 * length); before that it gives up the mutex, which may end another thread's wait.
 */
#include "sync_cond.h"

#include "old_cond.h"
#include "sync_mutex.h"

#define OLD_CALLER() gt_old_cond_calls(__builtin_return_address(0))

struct gt_wait gt_cond_begin(enum gt_hook hook, const void *cond, pthread_mutex_t *mutex)
{
    gt_mutex_release(hook, mutex);
    return gt_wait_begin_for(&(struct gt_wait_for){
        .hook = hook, .reason = GT_REASON_COND, .addr = cond, .mutex = mutex});
}

GT_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_wait, cond, mutex);
    return OLD_CALLER() ? gt_old_cond.wait(cond, mutex) : gt_real.pthread_cond_wait(cond, mutex);
}

GT_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                     const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_timedwait, cond, mutex);
    return OLD_CALLER() ? gt_old_cond.timedwait(cond, mutex, until)
                        : gt_real.pthread_cond_timedwait(cond, mutex, until);
}

GT_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                     const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_clockwait, cond, mutex);
    return gt_real.pthread_cond_clockwait(cond, mutex, clock, until);
}

GT_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    gt_wake_one(GT_HOOK_pthread_cond_signal, cond);
    return OLD_CALLER() ? gt_old_cond.signal(cond) : gt_real.pthread_cond_signal(cond);
}

GT_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    gt_wake_all(GT_HOOK_pthread_cond_broadcast, cond);
    return OLD_CALLER() ? gt_old_cond.broadcast(cond) : gt_real.pthread_cond_broadcast(cond);
}
