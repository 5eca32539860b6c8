/*
 * Condition variables, also C11's (see sync_mutex.c). A wait always blocks, or fails at once and
 * then shows as a wait of no length. Before it blocks, it gives the mutex up, which may end another
 * thread's wait.
 */
#include "encoder/base/arch/arch.h"
#include "preload/bind/real.h"
#include "preload/shared/lock_kind.h"
#include "preload/stacks/gil.h"
#include "preload/waits/hot.h"
#include "preload/waits/signalled.h"
#include "preload/waits/wait.h"
#include "symbolize/python/python.h"

/*
 * The caller gives the mutex up and waits at cond, inside `hook`, which was called at pc. Returns
 * the wait, as gt_wait_begin_lock.
 */
static struct gt_wait begin(enum gt_hook hook, enum gt_lock_kind kind, const void *cond,
                            void *mutex, struct gt_timeout *timeout, const void *pc)
{
    static const struct {
        enum gt_lock_kind kind;
        enum gt_hook leaf;
    } of_gil[] = {[GT_GIL_TAKE] = {GT_LOCK_GIL, GT_LEAF_take_gil},
                  [GT_GIL_SWITCH] = {GT_LOCK_OTHER, GT_LEAF_drop_gil}};
    enum gt_gil_wait gil = gt_gil_waits(cond, mutex, pc);
    bool kept = !gil && gt_mutex_is_kept(cond, mutex);
    struct gt_hold_end end = gt_mutex_release(hook, mutex);
    if (end.told)
        gt_hot_given_up(hook, mutex, false, end.at, end.shared);
    if (gil)
        *timeout = gt_timeout_none(); /* it does not end the wait for the GIL */
    else
        gt_signalled_expect(cond);
    struct gt_wait_for what = {.hook = gil ? of_gil[gil].leaf : hook,
                               .reason = gil ? GT_REASON_SYNC : GT_REASON_COND,
                               .addr = cond,
                               .kind = gil ? of_gil[gil].kind : kind,
                               .mutex = mutex,
                               .since = end.now,
                               .kept = kept,
                               .end = gt_timeout_is_set(timeout) ? timeout : NULL};
    struct gt_wait wait;
    return gt_wait_goes_on(&wait, &what) ? wait : gt_wait_begin_for(&what);
}

/* The caller is back from cond. Python's GIL is waited for in a loop, too: it is no herd's. */
static void keep(const struct gt_wait *wait, const void *cond, const void *mutex)
{
    if (wait->thread && wait->hook != GT_LEAF_take_gil && wait->hook != GT_LEAF_drop_gil)
        gt_mutex_keep(wait->thread, cond, mutex);
}

/* The function of Python that a wait's stack begins with, behind functions of its interpreter. */
static const void *python_of(const struct gt_stack *stack)
{
    uint32_t i = 1;
    while (stack && i < stack->n && stack->pcs[i] < GT_PYTHON_PCS)
        i++;
    return stack && i < stack->n ? (const void *)(uintptr_t)stack->pcs[i] : NULL;
}

/*
 * The caller has waited at cond. If that was for a GIL which is free now, the caller takes the GIL,
 * and this notes the hold. (A thread that finds the GIL free just writes to memory: its hold is not
 * timed.) Otherwise the caller asks the holder for the GIL after a timeout, and waits again.
 */
static void after_gil(struct gt_wait *wait, const void *cond, bool timed_out)
{
    if (wait->hook != GT_LEAF_take_gil)
        return;
    if (!gt_gil_is_free(cond) && timed_out)
        gt_wait_keep(wait, cond);
    else if (gt_gil_is_free(cond))
        gt_hot_taken(cond, gt_clock_now(), python_of(gt_self->w.g.wait_stack));
}

/* The clock of a condition variable, as pthread_condattr_setclock has set it. */
static clockid_t clock_of(const pthread_cond_t *cond)
{
    return gt_glibc_cond_flags(cond) & GT_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* The caller has given a hot GIL up, and is about to signal that. */
static void drop_gil(const void *cond)
{
    uint64_t until;
    if (gt_hot_until(cond, &until))
        gt_hot_given_up(GT_LEAF_drop_gil, cond, gt_registry_awaits(cond), until, false);
    else
        gt_hot_cool(cond);
}

/*
 * Ends waits and counts the signal. Signals to a variable that processes share are not counted: how
 * many waiters they reached is not known.
 */
static __attribute__((noinline)) void wake(enum gt_hook hook, enum gt_lock_kind kind,
                                           const void *cond, uint32_t max, const void *pc)
{
    bool expected = gt_signalled_is_expected(cond) && !gt_shared_is(kind, cond);
    bool gil = gt_gil_is(cond);
    if (gil && gt_hot_is(cond))
        drop_gil(cond);
    uint32_t reached = gt_wake(gil ? GT_LEAF_drop_gil : hook, cond, max);
    if (expected)
        gt_signalled_count_slow(hook, cond, pc, reached);
    if (gt_shared_is_awaited(kind, cond))
        gt_shared_wakes(hook, cond, max > 1);
}

static inline bool is_awaited(enum gt_lock_kind kind, const void *cond)
{
    return gt_registry_any(cond) || gt_shared_is_awaited(kind, cond);
}

#define WAIT(name, hook, real, parameters, arguments, timed_out, when)                      \
    GT_EXPORT int name parameters                                                           \
    {                                                                                       \
        struct gt_timeout end = when;                                                       \
        GT_WAIT(wait) = begin(GT_HOOK_##hook, KIND_##real, cond, mutex, &end, GT_CALLER()); \
        int r = real(hook) arguments;                                                       \
        gt_wait_fetch(&wait);                                                               \
        keep(&wait, cond, mutex);                                                           \
        if (r == (timed_out))                                                               \
            gt_wait_expired_once(&wait, &end);                                              \
        else if (r == 0)                                                                    \
            gt_wait_took(&wait);                                                            \
        gt_mutex_taken((pthread_mutex_t *)mutex, GT_CALLER());                              \
        after_gil(&wait, cond, r == (timed_out));                                           \
        return r;                                                                           \
    }
#define WAKE(type, name, hook, real, max)                              \
    GT_EXPORT int name(type *cond)                                     \
    {                                                                  \
        if (__builtin_expect(is_awaited(KIND_##real, cond), 0))        \
            wake(GT_HOOK_##hook, KIND_##real, cond, max, GT_CALLER()); \
        return real(hook)(cond);                                       \
    }
#define REAL(name) gt_real.name
#define KIND_REAL GT_LOCK_COND

WAIT(pthread_cond_wait, pthread_cond_wait, REAL, (pthread_cond_t * cond, pthread_mutex_t *mutex),
     (cond, mutex), ETIMEDOUT, gt_timeout_none())
WAIT(pthread_cond_timedwait, pthread_cond_timedwait, REAL,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until), ETIMEDOUT, gt_timeout_at(clock_of(cond), until))
WAIT(pthread_cond_clockwait, pthread_cond_clockwait, REAL,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (cond, mutex, clock, until), ETIMEDOUT, gt_timeout_at(clock, until))
WAIT(cnd_wait, cnd_wait, REAL, (cnd_t * cond, mtx_t *mutex), (cond, mutex), thrd_timedout,
     gt_timeout_none())
WAIT(cnd_timedwait, cnd_timedwait, REAL, (cnd_t * cond, mtx_t *mutex, const struct timespec *until),
     (cond, mutex, until), thrd_timedout, gt_timeout_at(CLOCK_REALTIME, until))
WAKE(pthread_cond_t, pthread_cond_signal, pthread_cond_signal, REAL, 1)
WAKE(pthread_cond_t, pthread_cond_broadcast, pthread_cond_broadcast, REAL, UINT32_MAX)
WAKE(cnd_t, cnd_signal, cnd_signal, REAL, 1)
WAKE(cnd_t, cnd_broadcast, cnd_broadcast, REAL, UINT32_MAX)

/*
 * Programs linked before glibc 2.3.2 have another layout of pthread_cond_t, which only the symbol
 * version tells (x86-64). A program that asks for the old version gets these functions, every other
 * program the ones above.
 */
#ifdef GT_ARCH_COND_OLD_VERSION

#define OLD(name) (gt_real_resolve(), gt_real_old.name)
#define KIND_OLD GT_LOCK_OTHER

WAIT(old_cond_wait, pthread_cond_wait, OLD, (pthread_cond_t * cond, pthread_mutex_t *mutex),
     (cond, mutex), ETIMEDOUT, gt_timeout_none())
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
