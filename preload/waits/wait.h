/* The two halves of every wait: of the thread that blocks, and of the thread that ends the wait. */
#pragma once

#include "shared.h"
#include "timeout.h"

#include "preload/registry/park.h"
#include "preload/shared/leaves.h"
#include "preload/thread/thread.h"

/* A wait under way, on the stack of the hook. */
struct gt_wait {
    struct gt_thread *thread; /* NULL: nothing recorded */
    bool stands;              /* see gt_thread_stand */
    bool counts;              /* for contention.h */
    uintptr_t frame;          /* tells this wait from the thread's other waits */
    uint32_t hook;
    uint64_t since;
    uint64_t woken;    /* the latest time at which it was over; 0: not known */
    const void *lock;  /* a lock whose holds are noted; or NULL */
    const void *mutex; /* a condition variable's mutex, reacquired at the end; or NULL */
    uint64_t due;      /* when it ends without a waker, gt_timeout_due; 0: not known */
    uint64_t
        slept; /* how often the thread had slept before it; of waits with a mutex and a timeout */
};

#define GT_WAIT(name) __attribute__((cleanup(gt_wait_end))) struct gt_wait name

/* Where the program called the hook. */
#define GT_CALLER() __builtin_return_address(0)

/*
 * Whether the clock and time are valid. The real timed functions check that before they look at the
 * lock or the semaphore.
 */
static inline bool gt_wait_valid(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 &&
           until->tv_nsec < 1000000000;
}

/*
 * The thread is about to block. errno is kept. Follow with the real call, then gt_wait_end, also
 * when cancellation leaves the real call: declare the variable with GT_WAIT.
 */
struct gt_wait gt_wait_begin_for(const struct gt_wait_for *what);
struct gt_wait gt_wait_begin(enum gt_hook hook, enum gt_reason reason, const void *addr);
struct gt_wait gt_wait_begin_lock(enum gt_hook hook, enum gt_lock_kind kind, const void *lock,
                                  const struct gt_timeout *end);

/*
 * A sleep. It is a wait for the lock that the thread has tried for in vain since its last wait, if
 * the lock is still taken: the thread sleeps to try again. No other thread ends that wait.
 */
struct gt_wait gt_wait_begin_sleep(enum gt_hook hook, const struct gt_timeout *end);

/* The calling thread has tried for a lock, and another thread has it. */
static inline void gt_wait_tried(enum gt_lock_kind kind, const void *lock)
{
    struct gt_thread *t = gt_self;
    if (t && !t->inside)
        t->tried = (struct gt_tried){lock, kind};
}

/*
 * The wait's timeout is over, but what its thread waits for has not come, and the thread will call
 * the hook for it again: all of that is one wait. gt_wait_goes_on is called in place of
 * gt_wait_begin_for there. false: no such wait is open, or another thread has ended it by now.
 */
void gt_wait_keep(struct gt_wait *wait, const void *addr);

/*
 * Like gt_wait_keep, for a thread that may not call the hook again. The thread's next call of any
 * other hook then ends the wait.
 */
void gt_wait_keep_until_call(struct gt_wait *wait, const void *addr);

/* The part of gt_wait_goes_on for a thread that has an open wait. */
bool gt_wait_goes_on_slow(struct gt_wait *wait, const struct gt_wait_for *what);

static inline bool gt_wait_goes_on(struct gt_wait *wait, const struct gt_wait_for *what)
{
    return gt_self && gt_self->kept.addr && gt_wait_goes_on_slow(wait, what);
}

/*
 * The real call of a condition variable's wait has returned, with the mutex. If many other threads
 * wait for that mutex, this prefetches at once the memory that we touch until the program gives the
 * mutex up.
 */
void gt_wait_fetch(const struct gt_wait *wait);

void gt_wait_end(struct gt_wait *wait);

/*
 * The real call has given the thread what it waited for, which one wake-up gives to one thread.
 * Call it before gt_wait_end, but not after a timeout or a signal: then another thread's wake-up
 * would be taken for this one's.
 */
static inline void gt_wait_took(const struct gt_wait *wait)
{
    if (wait->thread)
        wait->thread->parking.took = !wait->thread->parking.shared;
}

/*
 * The wait is over because its timeout is. The thread could have run from then on, except for the
 * time that the kernel may add to have fewer interrupts. Call it before gt_wait_end, which does not
 * need it.
 */
void gt_wait_expired(struct gt_wait *wait, const struct gt_timeout *timeout);

/*
 * As gt_wait_expired, for a condition variable's wait. After the timeout its thread may have waited
 * for the mutex; not if it has slept only once, until the timeout. If the timeout was over before
 * the wait, its thread must not have slept at all.
 */
void gt_wait_expired_once(struct gt_wait *wait, const struct gt_timeout *timeout);

/* For encoder/thread/events.h: gt_ev_is_taken, gt_ev_is_asleep. */
bool gt_wait_is_taken(const void *mutex, uint32_t tid);
bool gt_wait_is_asleep(struct gt_writer *w);

/*
 * Returns the result of a lock's real function. timed_out: the result that means that the timeout
 * is over.
 */
static inline int gt_wait_result(struct gt_wait *wait, int result, int timed_out,
                                 const struct gt_timeout *timeout)
{
    if (result == timed_out)
        gt_wait_expired(wait, timeout);
    return result;
}

/*
 * Whether a wait or call that begins in the hook at `frame` can be recorded. It cannot be in a
 * signal handler that interrupts another wait or call. A wait or call that was left by longjmp ends
 * here. Inside the guard.
 */
bool gt_wait_ready(struct gt_thread *t, uintptr_t frame);

/*
 * The calling thread is about to jump, which may leave a wait or call without its end. A signal
 * handler's jump inside the handler does not. Any context; errno is kept.
 */
void gt_wait_note_jump(void);

/* Ends waits. Returns how many. errno is kept. */
uint32_t gt_wake_slow(const struct gt_wake *wake);

/*
 * Ends all waits at wake->addr; from now on their threads wait at `to`. `next` is the only frame of
 * their new stacks.
 */
void gt_wake_pass(const struct gt_wake *wake, enum gt_hook next, const void *to);

static inline uint32_t gt_wake(enum gt_hook hook, const void *addr, uint32_t max)
{
    if (__builtin_expect(!gt_registry_any(addr), 1))
        return 0;
    return gt_wake_slow(&(struct gt_wake){.hook = hook, .addr = addr, .max = max});
}

static inline void gt_wake_one(enum gt_hook hook, const void *addr)
{
    gt_wake(hook, addr, 1);
}

static inline void gt_wake_all(enum gt_hook hook, const void *addr)
{
    gt_wake(hook, addr, UINT32_MAX);
}

/*
 * gt_mutex_release: the caller is about to give the mutex up, inside `hook`; ends the wait of its
 * oldest waiter. gt_mutex_taken: the caller has the mutex again, in a function that was called at
 * pc.
 */
struct gt_hold_end {
    bool told;    /* the caller must call gt_hot_given_up */
    bool shared;  /* other processes may use the mutex */
    uint64_t at;  /* see gt_hot_until */
    uint64_t now; /* the time, if gt_mutex_release has read the clock for the waiters; or 0 */
};
struct gt_hold_end gt_mutex_release_slow(enum gt_hook hook, pthread_mutex_t *mutex);

void gt_mutex_taken(pthread_mutex_t *mutex, const void *pc);

/*
 * gt_mutex_keep: t's thread is back from cond, with the mutex. gt_mutex_is_kept: the caller, which
 * is about to wait at cond, has not given the mutex up since: it was woken, and did nothing that
 * other threads can see. The mutex's next release clears a flag in a word that each unlock reads
 * anyway: see gt_registry_keep.
 */
void gt_mutex_keep(struct gt_thread *t, const void *cond, const void *mutex);
bool gt_mutex_is_kept(const void *cond, const void *mutex);

/* Whether a thread may wait for the mutex. true also if the mutex is hot, or kept. */
static inline bool gt_mutex_is_awaited(const pthread_mutex_t *mutex)
{
    return gt_registry_any(mutex) || gt_shared_is_awaited(GT_LOCK_MUTEX, mutex);
}

static inline struct gt_hold_end gt_mutex_release(enum gt_hook hook, pthread_mutex_t *mutex)
{
    if (__builtin_expect(gt_mutex_is_awaited(mutex), 0))
        return gt_mutex_release_slow(hook, mutex);
    return (struct gt_hold_end){.told = false};
}
