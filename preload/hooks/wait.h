/* The two halves of every wait: of the thread that blocks, and of the one that ends that. */
#ifndef GT_WAIT_H
#define GT_WAIT_H

#include "park.h"
#include "shared.h"
#include "timeout.h"

#include "preload/real.h"
#include "preload/thread.h"

/* A wait under way, on the stack of the hook. */
struct gt_wait {
    struct gt_thread *thread; /* NULL: nothing recorded */
    uintptr_t frame;          /* tells this wait from others of the thread */
    uint32_t hook;
    uint64_t since;
    uint64_t woken;    /* when it was over at the latest; 0: not known */
    const void *lock;  /* whose holds are noted; or NULL */
    const void *mutex; /* that a condition variable's waiter has again; or NULL */
    uint64_t
        slept; /* how often its thread had, when it began: of one that has a mutex and a time */
};

#define GT_WAIT(name) __attribute__((cleanup(gt_wait_end))) struct gt_wait name

/* What the real timed functions look at before they look at the lock or the semaphore. */
static inline bool gt_wait_valid(clockid_t clock, const struct timespec *until)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && until->tv_nsec >= 0 &&
           until->tv_nsec < 1000000000;
}

/*
 * The thread is about to block. errno is kept. Follow with the real call, then gt_wait_end, also
 * when the real call is left by cancellation: declare the variable with GT_WAIT.
 */
struct gt_wait gt_wait_begin_for(const struct gt_wait_for *what);
struct gt_wait gt_wait_begin(enum gt_hook hook, enum gt_reason reason, const void *addr);
struct gt_wait gt_wait_begin_lock(enum gt_hook hook, enum gt_lock_kind kind, const void *lock,
                                  const struct gt_timeout *end);

void gt_wait_end(struct gt_wait *wait);

/*
 * The wait is over because its time is. What it took longer, but for what the kernel may add to
 * have fewer interrupts, the thread could have run. Before gt_wait_end, which does not need it.
 */
void gt_wait_expired(struct gt_wait *wait, const struct gt_timeout *timeout);

/*
 * As gt_wait_expired, of a condition variable's wait. Its thread may have waited for the mutex
 * since then: not if it has slept once only, for the time to be over.
 */
void gt_wait_expired_once(struct gt_wait *wait, const struct gt_timeout *timeout);

/* For encoder/events.h: gt_ev_is_taken. */
bool gt_wait_is_taken(const void *mutex, uint32_t tid);

/* The result of a lock's real function, and how that says that its time is over. */
static inline int gt_wait_result(struct gt_wait *wait, int result, int timed_out,
                                 const struct gt_timeout *timeout)
{
    if (result == timed_out)
        gt_wait_expired(wait, timeout);
    return result;
}

/*
 * The thread lets others run, and stays runnable: sched_yield. Where nobody else has work for the
 * CPU it is over at once, and those who spin (OpenBLAS, LLVM's OpenMP) make a million of them a
 * second; so it is written when it is over, and only one of GOTRACE_SYSCALL_MIN or longer. What
 * gt_yield_begin returns is for gt_yield_end; errno is kept by both.
 */
uint64_t gt_yield_begin(void);
void gt_yield_end(enum gt_hook hook, uint64_t since);

/*
 * Inside the guard: whether a wait or a call that begins in the hook at `frame` can be recorded.
 * It can not in a signal handler that interrupts another one. One that was left by longjmp ends
 * here.
 */
bool gt_wait_ready(struct gt_thread *t, uintptr_t frame);

/*
 * The calling thread is about to do what may leave a wait or a call without its end; a handler's
 * own jump does not. Any context; errno is kept.
 */
void gt_wait_note_jump(void);

/* errno is kept. Returns how many. */
uint32_t gt_wake_slow(const struct gt_wake *wake);

/*
 * The waits there end, and their threads wait for something else from now on, at `to`: `next` is
 * what the leaf of that says, and all of the stack.
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
 * The caller is about to give the mutex up, inside `hook`: ends the wait of its oldest waiter. Or
 * has it back, in a function that was called at pc. told: gt_hot_given_up is to be called then.
 */
struct gt_hold_end {
    bool told;
    bool shared; /* with other processes */
    uint64_t at; /* see gt_hot_until */
};
struct gt_hold_end gt_mutex_release_slow(enum gt_hook hook, pthread_mutex_t *mutex);

void gt_mutex_taken(pthread_mutex_t *mutex, const void *pc);

/* Or it is hot. */
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

#endif
