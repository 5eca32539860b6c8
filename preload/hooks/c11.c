/*
 * C11 threads. libc's mtx_t and cnd_t are its mutexes and condition variables, and it calls those
 * directly: without hooks of their own these would not be seen. What they share with sync_mutex.c,
 * sync_cond.c and thread.c is done there.
 */
#include "sync_cond.h"
#include "sync_mutex.h"

#include <errno.h>
#include <threads.h>

GT_EXPORT int mtx_lock(mtx_t *mutex)
{
    int r = mtx_trylock(mutex);
    if (__builtin_expect(r != thrd_busy, 1))
        return r;
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_mtx_lock, GT_REASON_SYNC, mutex);
    return gt_real.mtx_lock(mutex);
}

GT_EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
    int r = mtx_trylock(mutex);
    if (__builtin_expect(r != thrd_busy, 1))
        return r;
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_mtx_timedlock, GT_REASON_SYNC, mutex);
    return gt_real.mtx_timedlock(mutex, until);
}

GT_EXPORT int mtx_unlock(mtx_t *mutex)
{
    gt_mutex_release(GT_HOOK_mtx_unlock, (pthread_mutex_t *)mutex);
    return gt_real.mtx_unlock(mutex);
}

GT_EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_cnd_wait, cond, (pthread_mutex_t *)mutex);
    return gt_real.cnd_wait(cond, mutex);
}

GT_EXPORT int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_cnd_timedwait, cond, (pthread_mutex_t *)mutex);
    return gt_real.cnd_timedwait(cond, mutex, until);
}

GT_EXPORT int cnd_signal(cnd_t *cond)
{
    gt_wake_one(GT_HOOK_cnd_signal, cond);
    return gt_real.cnd_signal(cond);
}

GT_EXPORT int cnd_broadcast(cnd_t *cond)
{
    gt_wake_all(GT_HOOK_cnd_broadcast, cond);
    return gt_real.cnd_broadcast(cond);
}

/* A thrd_t is a pthread_t, its result the pointer's low word (glibc's nptl/thrd_join.c). */
GT_EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *word;
    int r = gt_real.pthread_tryjoin_np((pthread_t)thread, &word);
    if (r == 0 && result)
        *result = (int)(intptr_t)word;
    if (r == 0)
        return thrd_success;
    if (r != EBUSY)
        return gt_real.thrd_join(thread, result);
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_thrd_join, GT_REASON_SYNC, (const void *)thread);
    return gt_real.thrd_join(thread, result);
}
