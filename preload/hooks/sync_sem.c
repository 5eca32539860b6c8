/*
 * POSIX semaphores, named ones as well. sem_post is called in signal handlers; when it interrupts
 * the tracer itself it just posts, and the waiter shows as having woken by itself.
 */
#include "wait.h"

/*
 * A token without a wait. The real functions are cancellation points also when there is a token
 * (glibc's sem_wait tests for it first), and set no errno then.
 */
static bool take(sem_t *sem)
{
    int saved = errno;
    pthread_testcancel();
    bool taken = sem_trywait(sem) == 0;
    errno = saved;
    return taken;
}

static int timed_out(struct gt_wait *wait, int result, const struct gt_timeout *end)
{
    if (result != 0 && errno == ETIMEDOUT)
        gt_wait_expired(wait, end);
    return result;
}

#define TAKE(name, valid, parameters, arguments, when)                              \
    GT_EXPORT int name parameters                                                   \
    {                                                                               \
        if (!(valid))                                                               \
            return gt_real.name arguments;                                          \
        if (take(sem))                                                              \
            return 0;                                                               \
        struct gt_timeout end = when;                                               \
        GT_WAIT(wait) = gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_SEM, sem, &end); \
        return timed_out(&wait, gt_real.name arguments, &end);                      \
    }

TAKE(sem_wait, true, (sem_t * sem), (sem), gt_timeout_after(0))
TAKE(sem_timedwait, gt_wait_valid(CLOCK_REALTIME, until),
     (sem_t * sem, const struct timespec *until), (sem, until),
     gt_timeout_at(CLOCK_REALTIME, until))
TAKE(sem_clockwait, gt_wait_valid(clock, until),
     (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until),
     gt_timeout_at(clock, until))

/* With a token left, the waiters that were woken are on their way to it. */
static void wake(sem_t *sem)
{
    int tokens = 0;
    if (sem_getvalue(sem, &tokens) == 0)
        gt_wake_slow(&(struct gt_wake){
            .hook = GT_HOOK_sem_post, .addr = sem, .max = 1, .asleep = tokens > 0});
}

GT_EXPORT int sem_post(sem_t *sem)
{
    if (__builtin_expect(gt_registry_any(sem), 0))
        wake(sem);
    if (__builtin_expect(gt_shared_is_awaited(GT_LOCK_SEM, sem), 0))
        gt_shared_wakes(GT_HOOK_sem_post, sem, false);
    return gt_real.sem_post(sem);
}
