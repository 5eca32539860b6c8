/*
 * Mutexes, POSIX's and C11's. To libc C11's are the same, but their functions do not call POSIX's
 * hooks.
 *
 * An uncontended lock is the real trylock and nothing else. For every kind of mutex trylock gives
 * the results of lock, except EBUSY for a held mutex. Only then may there be a wait to record. The
 * real lock then decides: it waits, or returns EDEADLK or whatever else an errorcheck mutex
 * returns.
 */
#include "encoder/base/arch/arch.h"
#include "encoder/base/sparse.h"
#include "preload/bind/real.h"
#include "preload/shared/lock_kind.h"
#include "preload/waits/brief.h"
#include "preload/waits/hot.h"
#include "preload/waits/wait.h"

#include <sys/syscall.h>

static bool held_by_caller(const pthread_mutex_t *mutex)
{
    return gt_self && gt_glibc_mutex_owner(mutex) == gt_self->w.m;
}

/* Whether the real lock will turn trylock's EBUSY into EDEADLK instead of waiting. */
static bool reports_relock(const pthread_mutex_t *mutex)
{
    return gt_glibc_mutex_type(mutex) == PTHREAD_MUTEX_ERRORCHECK && held_by_caller(mutex);
}

/* Whether an unlock by the caller releases the mutex. */
static bool releases(const pthread_mutex_t *mutex)
{
    switch (gt_glibc_mutex_type(mutex)) {
    case PTHREAD_MUTEX_RECURSIVE: return gt_glibc_mutex_count(mutex) == 1 && held_by_caller(mutex);
    case PTHREAD_MUTEX_ERRORCHECK: return held_by_caller(mutex);
    default: return true;
    }
}

/*
 * For each hash of a mutex: how many threads sleep for the mutex in the kernel, by the latest
 * count, less those that unlocks have woken since. If two mutexes share a place, the kernel is
 * asked more often.
 */
enum { COUNTED_MUTEXES = 64, COUNTED_AT_ONCE = 32 };
static struct sleepers {
    _Atomic(const void *) mutex;
    _Atomic uint32_t n;
} counted[COUNTED_MUTEXES] GT_SPARSE;

/*
 * How many threads sleep in the kernel for the mutex, COUNTED_AT_ONCE at most; 1 if the kernel does
 * not say. A requeue returns how many sleepers it moves; this one moves them to where they are. The
 * word stays GT_LLL_AWAITED until the caller unlocks.
 */
static uint32_t count_sleepers(const pthread_mutex_t *mutex)
{
    const uint32_t *word = gt_glibc_mutex_word(mutex);
    int saved = errno;
    long n = gt_syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, COUNTED_AT_ONCE, word,
                        GT_LLL_AWAITED);
    errno = saved;
    return n < 0 ? 1 : (uint32_t)n;
}

/*
 * Whether the unlock that the caller is about to make wakes a thread in the kernel. ask: if the
 * count is not known, ask the kernel; without it the answer is no. The kernel is not asked about
 * mutexes that processes share, or whose word is not lll_lock's: then the answer is `ask`.
 */
static bool wakes_sleeper(const pthread_mutex_t *mutex, bool ask)
{
    if (gt_glibc_mutex_is_held_alone(mutex))
        return false;
    if (gt_glibc_mutex_kind(mutex) & (GT_MUTEX_UNUSUAL | GT_MUTEX_SHARED))
        return ask;
    struct sleepers *s = &counted[gt_registry_slot(mutex) % COUNTED_MUTEXES];
    bool known = atomic_load_explicit(&s->mutex, memory_order_relaxed) == mutex;
    uint32_t n = known ? atomic_load_explicit(&s->n, memory_order_relaxed) : 0;
    if (!n && ask) {
        n = count_sleepers(mutex);
        atomic_store_explicit(&s->mutex, mutex, memory_order_relaxed);
    }
    if (n)
        atomic_store_explicit(&s->n, n - 1, memory_order_relaxed);
    return n != 0;
}

void gt_mutex_keep(struct gt_thread *t, const void *cond, const void *mutex)
{
    t->kept_mutex = (struct gt_kept_mutex){mutex, cond};
    gt_registry_keep(mutex, t->w.m);
}

bool gt_mutex_is_kept(const void *cond, const void *mutex)
{
    const struct gt_thread *t = gt_self;
    return t && t->kept_mutex.mutex == mutex && t->kept_mutex.cond == cond &&
           gt_registry_keeps(mutex, t->w.m);
}

/* The caller is about to give the mutex up. true: nothing else than that was to be noted. */
static bool ends_keep(const pthread_mutex_t *mutex)
{
    struct gt_thread *t = gt_self;
    if (!gt_registry_ends_keep(mutex))
        return false;
    if (t && t->kept_mutex.mutex == mutex)
        t->kept_mutex.mutex = NULL;
    return !gt_mutex_is_awaited(mutex);
}

struct gt_hold_end gt_mutex_release_slow(enum gt_hook hook, pthread_mutex_t *mutex)
{
    struct gt_hold_end end = {.told = false};
    if (!releases(mutex) || ends_keep(mutex))
        return end;
    end.shared = gt_shared_is(GT_LOCK_MUTEX, mutex);
    bool elsewhere = gt_shared_is_awaited(GT_LOCK_MUTEX, mutex);
    bool may_be_again = gt_registry_may_sleep_again(mutex, &end.now);
    bool again = wakes_sleeper(mutex, may_be_again) && may_be_again;
    bool awaited = elsewhere || again || !gt_registry_all_woken(mutex);
    bool told = gt_hot_is(mutex) && held_by_caller(mutex) && gt_hot_until(mutex, &end.at);
    if (told && awaited)
        gt_hot_given_up(hook, mutex, true, end.at, end.shared);
    if (awaited && gt_registry_any(mutex))
        gt_wake_slow(&(struct gt_wake){.hook = hook, .addr = mutex, .max = 1, .asleep = !again});
    if (elsewhere)
        gt_shared_wakes(hook, mutex, false);
    end.told = told && !awaited;
    return end;
}

/* Whether the caller has taken the recursive mutex before. */
static bool is_nested(const pthread_mutex_t *mutex)
{
    return gt_glibc_mutex_type(mutex) == PTHREAD_MUTEX_RECURSIVE && gt_glibc_mutex_count(mutex) > 1;
}

void gt_mutex_taken(pthread_mutex_t *mutex, const void *pc)
{
    if (gt_hot_is(mutex) && !is_nested(mutex))
        gt_hot_taken(mutex, gt_clock_now(), pc);
}

/*
 * Returns ENOTRECOVERABLE. For a mutex that is not recoverable, glibc's trylock keeps the word,
 * which lock would give back: the next thread to lock the mutex would wait for ever. Waiters of a
 * robust mutex are woken like those of a shared one.
 */
static int not_recoverable(pthread_mutex_t *mutex)
{
    uint32_t *word = gt_glibc_mutex_word(mutex);
    bool own = gt_glibc_mutex_owner(mutex) == (uint32_t)gt_syscall(SYS_gettid);
    if (own && !(gt_glibc_mutex_kind(mutex) & GT_MUTEX_PRIO_INHERIT) &&
        __atomic_exchange_n(word, 0, __ATOMIC_RELEASE) & FUTEX_WAITERS)
        gt_syscall(SYS_futex, word, FUTEX_WAKE, 1);
    return ENOTRECOVERABLE;
}

static bool is_success(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* After lock: `result` may be an error. Notes the hold only if the mutex was acquired. */
static __attribute__((noinline)) int taken(int result, pthread_mutex_t *mutex, const void *pc)
{
    if (result == ENOTRECOVERABLE)
        return not_recoverable(mutex);
    if (is_success(result))
        gt_mutex_taken(mutex, pc);
    return result;
}

/* Tries to take the mutex, and notes the hold if the mutex is hot. */
static inline __attribute__((always_inline)) int try_hot(pthread_mutex_t *mutex, const void *pc)
{
    bool hot = gt_hot_is(mutex), timed = hot && gt_hot_times();
    struct gt_light_hold *light = hot && !timed ? gt_hot_note_light(mutex, pc) : NULL;
    int r = gt_real.pthread_mutex_trylock(mutex);
    bool begins = r == 0 && !is_nested(mutex);
    if (light)
        gt_hot_settle_light(light, mutex, begins);
    else if (hot && begins)
        gt_hot_taken(mutex, timed ? gt_clock_now() : 0, pc);
    return r == 0 || r == EBUSY ? r : taken(r, mutex, pc);
}

/*
 * Waits briefly before a wait is recorded. Most waits of threads that contend for a mutex are over
 * before they could be written, and writing causes the next ones: a holder that writes holds the
 * mutex longer. So a wait that is over within two microseconds is counted (brief.h), and not
 * recorded. The limit is four microseconds if other threads wait for the mutex, because its holder
 * then writes their wake-ups. Between the tries the thread does not look at the mutex: each look
 * takes its cache line from the holder.
 */
static int lock_soon(pthread_mutex_t *mutex, const void *pc)
{
    enum { TRIES = 4, TRIES_IF_AWAITED = 8, APART_NS = 500 };
    struct gt_brief_counts *counts = gt_brief_of(mutex);
    uint64_t since = gt_clock_now(), now = since, apart = gt_clock_units(APART_NS);
    uint64_t tries = gt_registry_waits(mutex) ? TRIES_IF_AWAITED : TRIES;
    int r = EBUSY;
    for (uint64_t i = 1; i <= tries && r == EBUSY; i++) {
        for (; now - since < i * apart; now = gt_clock_now())
            gt_arch_pause();
        r = try_hot(mutex, pc);
    }
    if (counts && r != EBUSY)
        gt_brief_add(counts, now - since);
    return r;
}

typedef int lock_fn(pthread_mutex_t *mutex);

/* Slow half of lock. hook: the program's call; its result tells success or an error. */
static __attribute__((noinline)) int lock_contended(enum gt_hook hook, pthread_mutex_t *mutex,
                                                    const void *pc)
{
    bool c11 = hook == GT_HOOK_mtx_lock;
    lock_fn *real = c11 ? (lock_fn *)gt_real.mtx_lock : gt_real.pthread_mutex_lock;
    if (reports_relock(mutex))
        return real(mutex);
    int r = lock_soon(mutex, pc);
    if (r != EBUSY)
        return r;
    struct gt_timeout never = gt_timeout_none();
    GT_WAIT(wait) = gt_wait_begin_lock(hook, GT_LOCK_MUTEX, mutex, &never);
    r = real(mutex);
    if (is_success(r))
        gt_wait_took(&wait);
    return taken(r, mutex, pc);
}

static __attribute__((noinline)) int lock_hot(pthread_mutex_t *mutex, const void *pc)
{
    int r = try_hot(mutex, pc);
    return r == EBUSY ? lock_contended(GT_HOOK_pthread_mutex_lock, mutex, pc) : r;
}

GT_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(gt_hot_is(mutex), 0))
        return lock_hot(mutex, GT_CALLER());
    int r = gt_real.pthread_mutex_trylock(mutex);
    if (__builtin_expect(r == 0, 1))
        return 0;
    return r == EBUSY ? lock_contended(GT_HOOK_pthread_mutex_lock, mutex, GT_CALLER())
                      : taken(r, mutex, GT_CALLER());
}

GT_EXPORT int mtx_lock(mtx_t *mtx)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)mtx;
    int r = try_hot(mutex, GT_CALLER());
    if (r == EBUSY)
        r = lock_contended(GT_HOOK_mtx_lock, mutex, GT_CALLER());
    return r == 0 ? thrd_success : thrd_error;
}

GT_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int r = gt_real.pthread_mutex_trylock(mutex);
    if (is_success(r))
        gt_mutex_taken(mutex, GT_CALLER());
    else if (r == EBUSY)
        gt_wait_tried(GT_LOCK_MUTEX, mutex);
    return r;
}

GT_EXPORT int mtx_trylock(mtx_t *mutex)
{
    int r = gt_real.mtx_trylock(mutex);
    if (r == thrd_success)
        gt_mutex_taken((pthread_mutex_t *)mutex, GT_CALLER());
    else if (r == thrd_busy)
        gt_wait_tried(GT_LOCK_MUTEX, mutex);
    return r;
}

/*
 * Waits briefly, as lock does, if the timeout is valid and still to come. Otherwise returns EBUSY:
 * the real function then reports the error.
 */
static int lock_soon_until(pthread_mutex_t *mutex, const struct gt_timeout *end, const void *pc)
{
    return gt_timeout_is_ahead(end) ? lock_soon(mutex, pc) : EBUSY;
}

/* The result of the program's call, from that of a try. */
static int result_of_try(bool c11, int r)
{
    return c11 && r ? thrd_error : r;
}

#define LOCK(name, c11, valid, timed_out, parameters, arguments, when)                 \
    GT_EXPORT int name parameters                                                      \
    {                                                                                  \
        pthread_mutex_t *lock = (pthread_mutex_t *)mutex;                              \
        int r = (valid) ? gt_real.pthread_mutex_trylock(lock) : EBUSY;                 \
        if (__builtin_expect(r != EBUSY, 1))                                           \
            return result_of_try(c11, taken(r, lock, GT_CALLER()));                    \
        if (!(valid) || reports_relock(lock))                                          \
            return gt_real.name arguments;                                             \
        struct gt_timeout end = when;                                                  \
        r = lock_soon_until(lock, &end, GT_CALLER());                                  \
        if (r != EBUSY)                                                                \
            return result_of_try(c11, r);                                              \
        GT_WAIT(wait) = gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_MUTEX, lock, &end); \
        r = gt_wait_result(&wait, gt_real.name arguments, timed_out, &end);            \
        if (is_success(r))                                                             \
            gt_wait_took(&wait);                                                       \
        return taken(r, lock, GT_CALLER());                                            \
    }

LOCK(pthread_mutex_timedlock, false, true, ETIMEDOUT,
     (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until),
     gt_timeout_at(CLOCK_REALTIME, until))
/* An invalid clock is an error even when the mutex is free: the real function must report it. */
LOCK(pthread_mutex_clocklock, false, clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC, ETIMEDOUT,
     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
     (mutex, clock, until), gt_timeout_at(clock, until))
LOCK(mtx_timedlock, true, true, thrd_timedout, (mtx_t * mutex, const struct timespec *until),
     (mutex, until), gt_timeout_at(CLOCK_REALTIME, until))

/*
 * Whether an unlock wakes no waiter. A woken waiter that has not run yet is not woken again, while
 * there may be many unlocks.
 */
static bool lets_nobody_in(const pthread_mutex_t *mutex)
{
    bool waits = gt_registry_waits(mutex);
    return !waits || (gt_registry_all_woken(mutex) && gt_glibc_mutex_is_held_alone(mutex));
}

/* Whether the hold is a light one and its unlock wakes no waiter, as most do. */
static bool is_light(const pthread_mutex_t *mutex)
{
    return gt_hot_is_light(mutex) && !gt_shared_is_awaited(GT_LOCK_MUTEX, mutex) &&
           lets_nobody_in(mutex);
}

static __attribute__((noinline)) int unlock_awaited(pthread_mutex_t *mutex)
{
    enum gt_hook hook = GT_HOOK_pthread_mutex_unlock;
    bool once = gt_glibc_mutex_type(mutex) != PTHREAD_MUTEX_RECURSIVE;
    bool shared = gt_glibc_mutex_is_shared(mutex);
    if (once && gt_registry_is_kept(mutex) && ends_keep(mutex))
        return gt_real.pthread_mutex_unlock(mutex);
    if (once && is_light(mutex)) {
        int r = gt_real.pthread_mutex_unlock(mutex);
        if (!gt_hot_passes(mutex))
            gt_hot_given_up(hook, mutex, false, gt_clock_now(), shared);
        return r;
    }
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

static __attribute__((noinline)) int unlock_awaited_c11(mtx_t *mutex)
{
    enum gt_hook hook = GT_HOOK_mtx_unlock;
    struct gt_hold_end end = gt_mutex_release_slow(hook, (pthread_mutex_t *)mutex);
    int r = gt_real.mtx_unlock(mutex);
    if (end.told)
        gt_hot_given_up(hook, mutex, false, end.at, end.shared);
    return r;
}

GT_EXPORT int mtx_unlock(mtx_t *mutex)
{
    if (__builtin_expect(gt_mutex_is_awaited((pthread_mutex_t *)mutex), 0))
        return unlock_awaited_c11(mutex);
    return gt_real.mtx_unlock(mutex);
}
