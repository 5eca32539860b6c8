/*
 * Read-write locks. As with mutexes, the try variant comes first and is all that an uncontended
 * operation costs.
 *
 * Readers wait at the lock's address, writers one byte above it. An unlock wakes the waiters that
 * glibc wakes (nptl/pthread_rwlock_common.c):
 * - A writer's unlock wakes all readers, or one writer if no reader waits.
 * - With the preference for writers it wakes one writer, or all readers if no writer waits.
 * - The last reader's unlock wakes one writer.
 */
#include "preload/bind/real.h"
#include "preload/shared/lock_kind.h"
#include "preload/waits/hot.h"
#include "preload/waits/wait.h"

static const void *readers(const pthread_rwlock_t *lock)
{
    return lock;
}

static const void *writers(const pthread_rwlock_t *lock)
{
    return (const char *)lock + 1;
}

static bool written_by_caller(const pthread_rwlock_t *lock)
{
    return gt_self && gt_glibc_rwlock_writer(lock) == gt_self->w.m;
}

/* Whether the real lock will wait, after the try variant has returned r. */
static bool must_wait(const pthread_rwlock_t *lock, int r)
{
    return r == EBUSY && !written_by_caller(lock); /* else EDEADLK */
}

/*
 * Notes a writer's hold. Readers' holds are not noted: readers are many, and none of them holds the
 * lock alone.
 */
static int taken(int result, const pthread_rwlock_t *lock, const void *pc)
{
    if (result == 0 && __builtin_expect(gt_hot_is(lock), 0) && written_by_caller(lock))
        gt_hot_taken(lock, gt_clock_now(), pc);
    return result;
}
/*
 * Whether the clock and time are valid. To glibc a NULL time means no timeout. Its header declares
 * the time non-null, so gcc would leave the test out.
 */
static bool is_valid(clockid_t clock, const struct timespec *until)
{
    __asm__("" : "+r"(until));
    return !until || gt_wait_valid(clock, until);
}

#define LOCK(name, valid, try, at, parameters, arguments, when)                             \
    GT_EXPORT int name parameters                                                           \
    {                                                                                       \
        int r = (valid) ? try(lock) : EINVAL;                                               \
        if (r == 0)                                                                         \
            return taken(0, lock, GT_CALLER());                                             \
        if (!must_wait(lock, r))                                                            \
            return gt_real.name arguments;                                                  \
        struct gt_timeout end = when;                                                       \
        GT_WAIT(wait) = gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_RWLOCK, at(lock), &end); \
        r = gt_wait_result(&wait, gt_real.name arguments, ETIMEDOUT, &end);                 \
        if (r == 0 && written_by_caller(lock))                                              \
            gt_wait_took(&wait);                                                            \
        return taken(r, lock, GT_CALLER());                                                 \
    }
#define LOCK_UNTIL(name, try, at)                                                \
    LOCK(name, is_valid(CLOCK_REALTIME, until), try, at,                         \
         (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), \
         gt_timeout_at(CLOCK_REALTIME, until))
#define LOCK_BY_CLOCK(name, try, at)                                               \
    LOCK(name, is_valid(clock, until), try, at,                                    \
         (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), \
         (lock, clock, until), gt_timeout_at(clock, until))

LOCK(pthread_rwlock_rdlock, true, pthread_rwlock_tryrdlock, readers, (pthread_rwlock_t * lock),
     (lock), gt_timeout_none())
LOCK(pthread_rwlock_wrlock, true, gt_real.pthread_rwlock_trywrlock, writers,
     (pthread_rwlock_t * lock), (lock), gt_timeout_none())
LOCK_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, readers)
LOCK_UNTIL(pthread_rwlock_timedwrlock, gt_real.pthread_rwlock_trywrlock, writers)
LOCK_BY_CLOCK(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, readers)
LOCK_BY_CLOCK(pthread_rwlock_clockwrlock, gt_real.pthread_rwlock_trywrlock, writers)

GT_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    int r = gt_real.pthread_rwlock_trywrlock(lock);
    if (r == EBUSY)
        gt_wait_tried(GT_LOCK_RWLOCK, lock);
    return taken(r, lock, GT_CALLER());
}

static __attribute__((noinline)) int release(pthread_rwlock_t *lock)
{
    enum gt_hook hook = GT_HOOK_pthread_rwlock_unlock;
    bool awaited = !gt_registry_all_woken(readers(lock)) || !gt_registry_all_woken(writers(lock));
    uint64_t until;
    bool told = gt_hot_is(lock) && written_by_caller(lock) && gt_hot_until(lock, &until);
    bool shared = gt_shared_is(GT_LOCK_RWLOCK, lock);
    awaited |= told && (gt_registry_awaits(readers(lock)) || gt_registry_awaits(writers(lock)));
    if (told && awaited)
        gt_hot_given_up(hook, lock, true, until, shared);
    if (!written_by_caller(lock)) {
        if (gt_glibc_rwlock_readers(lock) <= 1)
            gt_wake_one(hook, writers(lock));
    } else if (gt_glibc_rwlock_prefers_readers(lock)) {
        if (gt_wake(hook, readers(lock), UINT32_MAX) == 0)
            gt_wake_one(hook, writers(lock));
    } else if (gt_wake(hook, writers(lock), 1) == 0) {
        gt_wake_all(hook, readers(lock));
    }
    if (gt_shared_is_awaited(GT_LOCK_RWLOCK, lock))
        gt_shared_wakes(hook, lock, false);
    int r = gt_real.pthread_rwlock_unlock(lock);
    if (told && !awaited)
        gt_hot_given_up(hook, lock, false, until, shared);
    return r;
}

static inline bool is_awaited(const pthread_rwlock_t *lock)
{
    return gt_registry_any(readers(lock)) || gt_registry_any(writers(lock)) ||
           gt_shared_is_awaited(GT_LOCK_RWLOCK, lock);
}

GT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (__builtin_expect(is_awaited(lock), 0))
        return release(lock);
    return gt_real.pthread_rwlock_unlock(lock);
}
