/*
 * Mutexes; also those of C11, which are the same to libc, but do not pass the hooks of these. The
 * uncontended way is the real trylock and nothing else: it gives the results of lock for every kind
 * of mutex except that "held" is EBUSY; only then is there a wait to record. The real lock then
 * decides: a wait, EDEADLK, or (an errorcheck mutex) whatever it is.
 */
#include "wait.h"

#include "encoder/base/arch/arch.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static bool held_by_caller(const pthread_mutex_t *mutex)
{
    return gt_self && (uint32_t)mutex->__data.__owner == gt_self->w.m;
}

static int type_of(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & 3; /* PTHREAD_MUTEX_KIND_MASK_NP of glibc; PI, robust… above it */
}

/* EBUSY that the real lock will answer with EDEADLK, not with a wait. */
static bool reports_relock(const pthread_mutex_t *mutex)
{
    return type_of(mutex) == PTHREAD_MUTEX_ERRORCHECK && held_by_caller(mutex);
}

/* Whether an unlock by the caller lets somebody else in. */
static bool releases(const pthread_mutex_t *mutex)
{
    switch (type_of(mutex)) {
    case PTHREAD_MUTEX_RECURSIVE: return mutex->__data.__count == 1 && held_by_caller(mutex);
    case PTHREAD_MUTEX_ERRORCHECK: return held_by_caller(mutex);
    default: return true;
    }
}

/*
 * Held, and nobody sleeps. Whoever was woken has not gone back to sleep: before it does, it makes
 * that 2 (lll_lock).
 */
static bool nobody_sleeps(const pthread_mutex_t *mutex)
{
    const int others = GT_MUTEX_ROBUST | GT_MUTEX_PRIO_INHERIT | GT_MUTEX_PRIO_PROTECT;
    return !(mutex->__data.__kind & others) &&
           __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 1;
}

struct gt_hold_end gt_mutex_release_slow(enum gt_hook hook, pthread_mutex_t *mutex)
{
    struct gt_hold_end end = {.shared = gt_shared_is(GT_LOCK_MUTEX, mutex)};
    if (!releases(mutex))
        return end;
    bool elsewhere = gt_shared_is_awaited(GT_LOCK_MUTEX, mutex);
    bool awaited = elsewhere || !gt_registry_all_woken(mutex);
    if (gt_hot_is(mutex) && held_by_caller(mutex))
        end.told = gt_hot_until(mutex, &end.at);
    awaited |= end.told && gt_registry_awaits(mutex);
    if (end.told && awaited)
        gt_hot_given_up(hook, mutex, true, end.at, end.shared);
    if (awaited || !nobody_sleeps(mutex))
        gt_wake_one(hook, mutex);
    if (elsewhere)
        gt_shared_wakes(hook, mutex, false);
    end.told &= !awaited;
    return end;
}

static void note(pthread_mutex_t *mutex, uint64_t since, const void *pc)
{
    bool again = type_of(mutex) == PTHREAD_MUTEX_RECURSIVE && mutex->__data.__count > 1;
    if (!again)
        gt_hot_taken(mutex, since, pc);
}

void gt_mutex_taken(pthread_mutex_t *mutex, const void *pc)
{
    if (gt_hot_is(mutex))
        note(mutex, gt_clock_now(), pc);
}

/*
 * glibc's trylock keeps the word of a mutex that is not recoverable, which its lock gives back: who
 * locks it next would wait for ever. Robust mutexes are woken as shared ones.
 */
static int not_recoverable(pthread_mutex_t *mutex)
{
    int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
    bool own = (word & FUTEX_TID_MASK) == (int)gt_syscall(SYS_gettid);
    if (own && !(mutex->__data.__kind & GT_MUTEX_PRIO_INHERIT) &&
        __atomic_exchange_n(&mutex->__data.__lock, 0, __ATOMIC_RELEASE) & (int)FUTEX_WAITERS)
        gt_syscall(SYS_futex, &mutex->__data.__lock, FUTEX_WAKE, 1);
    return ENOTRECOVERABLE;
}

static bool is_success(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* The same for who may not have got it. */
static __attribute__((noinline)) int taken(int result, pthread_mutex_t *mutex, const void *pc)
{
    if (result == ENOTRECOVERABLE)
        return not_recoverable(mutex);
    if (is_success(result))
        gt_mutex_taken(mutex, pc);
    return result;
}
#define CALLER() __builtin_return_address(0)

/*
 * Most waits of two threads that fight for a mutex are over before they could have been written,
 * and writing makes the next ones: what comes free within a fraction of a microsecond is no wait.
 */
static int lock_soon(pthread_mutex_t *mutex)
{
    enum { TURNS = 8 };
    for (int i = 0; i < TURNS && nobody_sleeps(mutex); i++)
        gt_arch_pause();
    return gt_real.pthread_mutex_trylock(mutex);
}

static __attribute__((noinline)) int lock_contended(pthread_mutex_t *mutex, const void *pc)
{
    if (reports_relock(mutex))
        return gt_real.pthread_mutex_lock(mutex);
    int r = lock_soon(mutex);
    if (r != EBUSY)
        return taken(r, mutex, pc);
    struct gt_timeout never = gt_timeout_after(0);
    GT_WAIT(wait) = gt_wait_begin_lock(GT_HOOK_pthread_mutex_lock, GT_LOCK_MUTEX, mutex, &never);
    return taken(gt_real.pthread_mutex_lock(mutex), mutex, pc);
}

static __attribute__((noinline)) int lock_hot(pthread_mutex_t *mutex, const void *pc)
{
    int r = gt_real.pthread_mutex_trylock(mutex);
    if (r == EBUSY)
        return lock_contended(mutex, pc);
    if (!is_success(r))
        return taken(r, mutex, pc);
    note(mutex, gt_hot_since(), pc);
    return r;
}

GT_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(gt_hot_is(mutex), 0))
        return lock_hot(mutex, CALLER());
    int r = gt_real.pthread_mutex_trylock(mutex);
    if (__builtin_expect(r == 0, 1))
        return 0;
    return r == EBUSY ? lock_contended(mutex, CALLER()) : taken(r, mutex, CALLER());
}

GT_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int r = gt_real.pthread_mutex_trylock(mutex);
    if (is_success(r))
        gt_mutex_taken(mutex, CALLER());
    return r;
}

GT_EXPORT int mtx_trylock(mtx_t *mutex)
{
    int r = gt_real.mtx_trylock(mutex);
    if (r == thrd_success)
        gt_mutex_taken((pthread_mutex_t *)mutex, CALLER());
    return r;
}

#define LOCK(name, valid, try, busy, timed_out, parameters, arguments, when)            \
    GT_EXPORT int name parameters                                                       \
    {                                                                                   \
        int r = (valid) ? try(mutex) : busy;                                            \
        if (__builtin_expect(r != busy, 1))                                             \
            return taken(r, (pthread_mutex_t *)mutex, CALLER());                        \
        if (!(valid) || reports_relock((const pthread_mutex_t *)mutex))                 \
            return gt_real.name arguments;                                              \
        struct gt_timeout end = when;                                                   \
        GT_WAIT(wait) = gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_MUTEX, mutex, &end); \
        r = gt_wait_result(&wait, gt_real.name arguments, timed_out, &end);             \
        return taken(r, (pthread_mutex_t *)mutex, CALLER());                            \
    }

LOCK(pthread_mutex_timedlock, true, gt_real.pthread_mutex_trylock, EBUSY, ETIMEDOUT,
     (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until),
     gt_timeout_at(CLOCK_REALTIME, until))
/* An invalid clock is an error even when the mutex is free: let the real function say so. */
LOCK(pthread_mutex_clocklock, clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC,
     gt_real.pthread_mutex_trylock, EBUSY, ETIMEDOUT,
     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
     (mutex, clock, until), gt_timeout_at(clock, until))
LOCK(mtx_lock, true, gt_real.mtx_trylock, thrd_busy, thrd_timedout, (mtx_t * mutex), (mutex),
     gt_timeout_after(0))
LOCK(mtx_timedlock, true, gt_real.mtx_trylock, thrd_busy, thrd_timedout,
     (mtx_t * mutex, const struct timespec *until), (mutex, until),
     gt_timeout_at(CLOCK_REALTIME, until))

/* Who was woken, and has not run yet, is not woken again, and others may be many times meanwhile.
 */
static bool lets_nobody_in(const pthread_mutex_t *mutex)
{
    bool waits = gt_registry_waits(mutex);
    return !waits || (gt_registry_all_woken(mutex) && nobody_sleeps(mutex));
}

static __attribute__((noinline)) int unlock_awaited(pthread_mutex_t *mutex)
{
    enum gt_hook hook = GT_HOOK_pthread_mutex_unlock;
    bool once = type_of(mutex) != PTHREAD_MUTEX_RECURSIVE;
    bool elsewhere = gt_shared_is_awaited(GT_LOCK_MUTEX, mutex);
    if (once && !elsewhere && lets_nobody_in(mutex) && gt_hot_passes(mutex))
        return gt_real.pthread_mutex_unlock(mutex);
    struct gt_hold_end end = gt_mutex_release_slow(hook, mutex);
    int r = gt_real.pthread_mutex_unlock(mutex);
    if (end.told)
        gt_hot_given_up(hook, mutex, false, end.at, end.shared);
    return r;
}

GT_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(gt_mutex_is_awaited(mutex), 0))
        return unlock_awaited(mutex);
    return gt_real.pthread_mutex_unlock(mutex);
}

GT_EXPORT int mtx_unlock(mtx_t *mutex)
{
    struct gt_hold_end end = gt_mutex_release(GT_HOOK_mtx_unlock, (pthread_mutex_t *)mutex);
    int r = gt_real.mtx_unlock(mutex);
    if (end.told)
        gt_hot_given_up(GT_HOOK_mtx_unlock, mutex, false, end.at, end.shared);
    return r;
}
