/*
 * POSIX semaphores, named ones as well. A signal handler may call sem_post. If it interrupts the
 * tracer itself, only the real sem_post is called, and the waiter wakes without a waker in the
 * trace.
 */
#include "py_lock.h"

#include "encoder/format/lock_texts.h"
#include "preload/bind/real.h"
#include "preload/registry/owner.h"
#include "preload/registry/py_taker.h"
#include "preload/registry/sem_lock.h"
#include "preload/shared/lock_kind.h"
#include "preload/stacks/pymutex.h"
#include "preload/stacks/python_stack.h"
#include "preload/waits/hot.h"
#include "preload/waits/wait.h"

/*
 * Takes a token without waiting; errno is kept. tests: the real function is a cancellation point
 * even when there is a token, as all of glibc's are except sem_clockwait.
 */
static bool take(sem_t *sem, bool tests)
{
    int saved = errno;
    if (tests)
        pthread_testcancel();
    bool taken = gt_real.sem_trywait(sem) == 0;
    errno = saved;
    return taken;
}

enum { NO_TAKER = GT_HOLDER_SELF }; /* the number of no thread */

/* The caller has taken a token of a hot semaphore, in a function that was called at pc. */
static __attribute__((noinline)) void note(const sem_t *sem, bool waited, const void *pc)
{
    if (!gt_self || !gt_sem_lock_taken(sem, gt_self->w.m))
        return;
    uint64_t since = waited || gt_hot_times() ? gt_clock_now() : 0;
    gt_hot_taken(sem, since, since ? gt_python_taker(pc) : pc);
}

static uint32_t own_tid(void)
{
    return gt_self ? gt_self->w.m : 0;
}

static inline int taken(int result, const sem_t *sem, bool waited, const void *pc)
{
    if (result == 0 && __builtin_expect(gt_hot_is(sem), 0))
        note(sem, waited, pc);
    return result;
}

/* Python takes a lock that is free by sem_trywait. */
static inline void taken_by_python(int result, const sem_t *sem, const void *pc)
{
    if (result == 0 && __builtin_expect(gt_pymutex_is_code(pc), 0))
        gt_py_taker_takes(sem, own_tid());
}

static int timed_out(struct gt_wait *wait, int result, const struct gt_timeout *end)
{
    if (result == 0)
        gt_wait_took(wait);
    else if (errno == ETIMEDOUT)
        gt_wait_expired(wait, end);
    return result;
}

/* Begins the wait for the semaphore, or for Python's lock that the semaphore belongs to. */
static struct gt_wait begin(enum gt_hook hook, const sem_t *sem, const void *lock,
                            const struct gt_timeout *end)
{
    return lock ? gt_py_lock_begin(hook, sem, lock, end)
                : gt_wait_begin_lock(hook, GT_LOCK_SEM, sem, end);
}

#define TAKE(name, tests, valid, parameters, arguments, when)        \
    GT_EXPORT int name parameters                                    \
    {                                                                \
        if (!(valid))                                                \
            return gt_real.name arguments;                           \
        if (take(sem, tests)) {                                      \
            taken_by_python(0, sem, GT_CALLER());                    \
            return taken(0, sem, false, GT_CALLER());                \
        }                                                            \
        struct gt_timeout end = when;                                \
        const void *lock = gt_pymutex_waited(sem, GT_CALLER());      \
        GT_WAIT(wait) = begin(GT_HOOK_##name, sem, lock, &end);      \
        int result = timed_out(&wait, gt_real.name arguments, &end); \
        if (lock && result == 0)                                     \
            gt_py_lock_waited(sem, lock, GT_CALLER());               \
        if (lock)                                                    \
            return result;                                           \
        taken_by_python(result, sem, GT_CALLER());                   \
        return taken(result, sem, true, GT_CALLER());                \
    }

TAKE(sem_wait, true, true, (sem_t * sem), (sem), gt_timeout_none())
TAKE(sem_timedwait, true, gt_wait_valid(CLOCK_REALTIME, until),
     (sem_t * sem, const struct timespec *until), (sem, until),
     gt_timeout_at(CLOCK_REALTIME, until))
TAKE(sem_clockwait, false, gt_wait_valid(clock, until),
     (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until),
     gt_timeout_at(clock, until))

GT_EXPORT int sem_trywait(sem_t *sem)
{
    int r = gt_real.sem_trywait(sem);
    if (r != 0)
        gt_wait_tried(GT_LOCK_SEM, sem);
    taken_by_python(r, sem, GT_CALLER());
    return taken(r, sem, false, GT_CALLER());
}

GT_EXPORT int sem_init(sem_t *sem, int shared, unsigned tokens)
{
    gt_sem_lock_begins(sem, tokens);
    gt_py_taker_begins(sem);
    return gt_real.sem_init(sem, shared, tokens);
}

/*
 * Ends a wait. If there is a token left, woken waiters are on their way to it: then only a waiter
 * that was not woken yet is woken.
 */
static void wake(sem_t *sem)
{
    int tokens = 0;
    if (sem_getvalue(sem, &tokens) == 0)
        gt_wake_slow(&(struct gt_wake){
            .hook = GT_HOOK_sem_post, .addr = sem, .max = 1, .asleep = tokens > 0});
}

/*
 * By the post the calling thread gives up a lock. A signal handler that posts what its thread waits
 * for gives up nothing: then the poster is no taker.
 */
static bool gives_up(const sem_t *sem)
{
    const struct gt_thread *t = gt_self;
    if (!t)
        return false;
    bool waits = gt_lock_at(t->parking.waiter.addr) == sem;
    return gt_sem_lock_posted(sem, waits ? NO_TAKER : t->w.m);
}

/* There are waiters, or the semaphore is hot, or belongs to a lock of Python's. */
static __attribute__((noinline)) int post_slow(sem_t *sem, const void *lock)
{
    if (lock)
        gt_py_lock_passed(GT_HOOK_sem_post, sem, lock);
    bool shared = gt_shared_is(GT_LOCK_SEM, sem), awaited = gt_registry_waits(sem) != 0;
    bool hot = !lock && gt_hot_is(sem), ends = hot && gives_up(sem);
    uint64_t until = 0;
    bool told = ends && gt_hot_until(sem, &until);
    if (told && awaited)
        gt_hot_given_up(GT_HOOK_sem_post, sem, true, until, shared);
    if (awaited)
        wake(sem);
    if (gt_shared_is_awaited(GT_LOCK_SEM, sem))
        gt_shared_wakes(GT_HOOK_sem_post, sem, false);
    if (hot && !ends)
        gt_hot_cool(sem);
    int result = gt_real.sem_post(sem);
    if (told && !awaited)
        gt_hot_given_up(GT_HOOK_sem_post, sem, false, until, shared);
    return result;
}

GT_EXPORT int sem_post(sem_t *sem)
{
    const void *lock = NULL;
    if (__builtin_expect(gt_pymutex_is_code(GT_CALLER()), 0)) {
        lock = gt_pymutex_posted(sem);
        gt_py_taker_posts(sem, own_tid());
    }
    if (__builtin_expect(lock || gt_registry_any(sem) || gt_shared_is_awaited(GT_LOCK_SEM, sem), 0))
        return post_slow(sem, lock);
    return gt_real.sem_post(sem);
}
