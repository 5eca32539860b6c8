/*
 * Condition variables, also C11's (see sync_mutex.c). A wait always blocks (or fails at once, which
 * shows as a wait of no length); before that it gives up the mutex, which may end another thread's
 * wait.
 */
#include "signalled.h"
#include "wait.h"

#include "encoder/base/arch/arch.h"

/* The caller gives the mutex up and waits at cond, inside `hook`; as gt_wait_begin_lock. */
static struct gt_wait begin(enum gt_hook hook, enum gt_lock_kind kind, const void *cond,
                            void *mutex, const struct gt_timeout *timeout)
{
    struct gt_hold_end end = gt_mutex_release(hook, mutex);
    if (end.told)
        gt_hot_given_up(hook, mutex, false, end.at, end.shared);
    gt_signalled_expect(cond);
    return gt_wait_begin_for(
        &(struct gt_wait_for){.hook = hook,
                              .reason = GT_REASON_COND,
                              .addr = cond,
                              .kind = kind,
                              .mutex = mutex,
                              .end = gt_timeout_is_set(timeout) ? timeout : NULL});
}

/* By pthread_condattr_setclock, of one of today's layout (glibc's nptl/pthreadP.h). */
static clockid_t clock_of(const pthread_cond_t *cond)
{
    enum { CLOCK_MONOTONIC_MASK = 2 };
    unsigned flags = __atomic_load_n(&cond->__data.__wrefs, __ATOMIC_RELAXED);
    return flags & CLOCK_MONOTONIC_MASK ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* Of those that processes share it is not known how many were reached. */
static __attribute__((noinline)) void wake(enum gt_hook hook, enum gt_lock_kind kind,
                                           const void *cond, uint32_t max, const void *pc)
{
    bool expected = gt_signalled_is_expected(cond) && !gt_shared_is(kind, cond);
    uint32_t reached = gt_wake(hook, cond, max);
    if (expected)
        gt_signalled_count_slow(hook, cond, pc, reached);
    if (gt_shared_is_awaited(kind, cond))
        gt_shared_wakes(hook, cond, max > 1);
}

static inline bool is_awaited(enum gt_lock_kind kind, const void *cond)
{
    return gt_registry_any(cond) || gt_shared_is_awaited(kind, cond);
}

#define WAIT(name, hook, real, parameters, arguments, timed_out, when)         \
    GT_EXPORT int name parameters                                              \
    {                                                                          \
        struct gt_timeout end = when;                                          \
        GT_WAIT(wait) = begin(GT_HOOK_##hook, KIND_##real, cond, mutex, &end); \
        int r = real(hook) arguments;                                          \
        if (r == (timed_out))                                                  \
            gt_wait_expired_once(&wait, &end);                                 \
        gt_mutex_taken((pthread_mutex_t *)mutex, __builtin_return_address(0)); \
        return r;                                                              \
    }
#define WAKE(type, name, hook, real, max)                                              \
    GT_EXPORT int name(type *cond)                                                     \
    {                                                                                  \
        if (__builtin_expect(is_awaited(KIND_##real, cond), 0))                        \
            wake(GT_HOOK_##hook, KIND_##real, cond, max, __builtin_return_address(0)); \
        return real(hook)(cond);                                                       \
    }
#define REAL(name) gt_real.name
#define KIND_REAL GT_LOCK_COND

WAIT(pthread_cond_wait, pthread_cond_wait, REAL, (pthread_cond_t * cond, pthread_mutex_t *mutex),
     (cond, mutex), ETIMEDOUT, gt_timeout_after(0))
WAIT(pthread_cond_timedwait, pthread_cond_timedwait, REAL,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until), ETIMEDOUT, gt_timeout_at(clock_of(cond), until))
WAIT(pthread_cond_clockwait, pthread_cond_clockwait, REAL,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (cond, mutex, clock, until), ETIMEDOUT, gt_timeout_at(clock, until))
WAIT(cnd_wait, cnd_wait, REAL, (cnd_t * cond, mtx_t *mutex), (cond, mutex), thrd_timedout,
     gt_timeout_after(0))
WAIT(cnd_timedwait, cnd_timedwait, REAL, (cnd_t * cond, mtx_t *mutex, const struct timespec *until),
     (cond, mutex, until), thrd_timedout, gt_timeout_at(CLOCK_REALTIME, until))
WAKE(pthread_cond_t, pthread_cond_signal, pthread_cond_signal, REAL, 1)
WAKE(pthread_cond_t, pthread_cond_broadcast, pthread_cond_broadcast, REAL, UINT32_MAX)
WAKE(cnd_t, cnd_signal, cnd_signal, REAL, 1)
WAKE(cnd_t, cnd_broadcast, cnd_broadcast, REAL, UINT32_MAX)

/*
 * Programs linked before glibc 2.3.2 have another layout of pthread_cond_t, told apart by symbol
 * version only (x86-64). Who asks for that version finds these; everybody else, those above.
 */
#ifdef GT_ARCH_COND_OLD_VERSION

#define OLD(name) (gt_real_resolve(), gt_real_old.name)
#define KIND_OLD GT_LOCK_OTHER

WAIT(old_cond_wait, pthread_cond_wait, OLD, (pthread_cond_t * cond, pthread_mutex_t *mutex),
     (cond, mutex), ETIMEDOUT, gt_timeout_after(0))
WAIT(old_cond_timedwait, pthread_cond_timedwait, OLD,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until), ETIMEDOUT, gt_timeout_at(CLOCK_REALTIME, until))
WAKE(pthread_cond_t, old_cond_signal, pthread_cond_signal, OLD, 1)
WAKE(pthread_cond_t, old_cond_broadcast, pthread_cond_broadcast, OLD, UINT32_MAX)

#define VERSIONS(name)                                                               \
    __asm__(".symver pthread_" #name ", pthread_" #name "@@@" GT_ARCH_COND_VERSION); \
    __asm__(".symver old_" #name ", pthread_" #name "@" GT_ARCH_COND_OLD_VERSION ", remove")

VERSIONS(cond_wait);
VERSIONS(cond_timedwait);
VERSIONS(cond_signal);
VERSIONS(cond_broadcast);

#endif
