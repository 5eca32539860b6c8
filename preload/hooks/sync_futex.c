/*
 * syscall(2): how Rust's std, C++20's atomic::wait and many libraries reach futexes. Their waiters
 * and wakers share the registry with those of libc's own primitives. Other system calls that may
 * block show as slices. In stacks each call has its own name instead of `syscall`: raw.def.
 */
#include "preload/bind/real.h"
#include "preload/life/births.h"
#include "preload/life/fork.h"
#include "preload/life/process_confine.h"
#include "preload/life/process_end.h"
#include "preload/life/seccomp.h"
#include "preload/stacks/code_layouts.h"
#include "preload/waits/futex_any.h"
#include "preload/waits/slice.h"
#include "preload/waits/wait.h"
#include "symbolize/elf/modules.h"

#include <stdarg.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define WORDS 6

/* A system call of the program's. */
struct raw {
    long number;
    const void *from; /* where the program made it */
    long a[WORDS];
};

static long call(const struct raw *r)
{
    return gt_real.syscall(r->number, r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5]);
}

/*
 * Asks the kernel to requeue no waiter: 0, or the error. The answer says whether the first word has
 * the value and both words can be read. We do not read the words ourselves: another thread may
 * unmap them at any moment.
 */
static int ask(const long a[WORDS], int command, long second, long value)
{
    int saved = errno;
    long r = gt_real.syscall(SYS_futex, a[0], command | ((int)a[1] & FUTEX_PRIVATE_FLAG), 0, 0,
                             second, value);
    int error = r < 0 ? errno : 0;
    errno = saved;
    return error;
}

static struct gt_timeout end_of(const long a[WORDS])
{
    const struct timespec *time = (const struct timespec *)a[3];
    clockid_t clock = (int)a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    if (((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT)
        return gt_timeout_for(time);
    return gt_timeout_at(clock, time);
}

/*
 * Whether the wait is a part of one without a limit: libc++ looks every 2 s whether an atomic
 * variable has changed, and waits again (libcxx/src/atomic.cpp, __default_timeout).
 */
static bool is_part(const struct raw *r, const long a[WORDS])
{
    const struct timespec *time = (const struct timespec *)a[3];
    const struct gt_module *m;
    return ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && time &&
           (m = gt_modules_now((uintptr_t)r->from)) && strstr(m->path, "/libc++.so") &&
           gt_can_read(time, sizeof *time) && time->tv_sec == 2 && !time->tv_nsec;
}

/*
 * Waits if the word still has the value; else the kernel answers EAGAIN at once. a: what the call
 * means, as futex(2) takes it.
 */
static long futex_wait(const struct raw *r, const long a[WORDS], uint32_t bits)
{
    if (!gt_recording() || ask(a, FUTEX_CMP_REQUEUE, a[0], a[2]) != 0)
        return call(r);
    bool part = is_part(r, a);
    struct gt_timeout end = part ? gt_timeout_none() : end_of(a);
    struct gt_wait_for what = {.hook = GT_RAW_FUTEX_WAIT,
                               .reason = GT_REASON_SYNC,
                               .addr = (const void *)a[0],
                               .kind = GT_LOCK_OTHER,
                               .bits = bits,
                               .end = &end,
                               .final = true};
    GT_WAIT(wait);
    if (!part || !gt_wait_goes_on(&wait, &what))
        wait = gt_wait_begin_for(&what);
    long result = call(r);
    if (result < 0 && errno == ETIMEDOUT && part)
        gt_wait_keep_until_call(&wait, what.addr);
    else if (result < 0 && errno == ETIMEDOUT)
        gt_wait_expired(&wait, &end);
    if (result == 0 && (a[1] & FUTEX_PRIVATE_FLAG))
        gt_wait_took(&wait);
    return result;
}

/*
 * Ends as many waits as the kernel will: it reads the number as an int, and takes less than 1 for
 * 1.
 */
static void wake(enum gt_hook leaf, long address, long max, uint32_t bits)
{
    struct gt_wake wake = {.hook = leaf,
                           .addr = (const void *)address,
                           .max = (int)max < 1 ? 1 : (uint32_t)max,
                           .bits = bits};
    if (__builtin_expect(gt_registry_any(wake.addr), 0))
        wake.max -= gt_wake_slow(&wake);
    if (__builtin_expect(gt_futex_any_waits(), 0) && wake.max)
        gt_futex_any_wake(&wake);
}

/*
 * futex(2), FUTEX_WAKE_OP: whether the call also wakes waiters of the second word, by that word's
 * old value.
 */
static bool wake_op_compares(long address, uint32_t op)
{
    int32_t old = (int32_t)__atomic_load_n((const uint32_t *)address, __ATOMIC_RELAXED);
    int32_t arg = (int32_t)(op << 20) >> 20;
    switch (op >> 24 & 15) {
    case FUTEX_OP_CMP_EQ: return old == arg;
    case FUTEX_OP_CMP_NE: return old != arg;
    case FUTEX_OP_CMP_LT: return old < arg;
    case FUTEX_OP_CMP_LE: return old <= arg;
    case FUTEX_OP_CMP_GT: return old > arg;
    default: return old >= arg;
    }
}

static void wake_op(const long a[WORDS])
{
    if (!gt_registry_any((const void *)a[0]) && !gt_registry_any((const void *)a[4]))
        return;
    if (!gt_can_read((const void *)a[4], sizeof(uint32_t)))
        return;
    bool both = wake_op_compares(a[4], (uint32_t)a[5]);
    wake(GT_RAW_FUTEX_WAKE, a[0], a[2], 0);
    if (both)
        wake(GT_RAW_FUTEX_WAKE, a[4], a[3], 0);
}

/*
 * Moves waiters as the kernel will. command: how to ask the kernel whether it would. For a private
 * futex the kernel moves waiters even to NULL, where the registry has no waiters: those stay where
 * they are.
 */
static void requeue(const long a[WORDS], int command)
{
    if (!gt_registry_any((const void *)a[0]) || (int)a[2] < 0 || (int)a[3] < 0 ||
        ask(a, command, a[4], a[5]) != 0)
        return;
    if ((int)a[2] > 0)
        wake(GT_RAW_FUTEX_REQUEUE, a[0], a[2], 0);
    if ((int)a[3] > 0 && a[4])
        gt_registry_move((const void *)a[0], (const void *)a[4], (uint32_t)a[3]);
}

static long lock_pi(const struct raw *r)
{
    const long *a = r->a;
    bool held = gt_recording() && ask(a, FUTEX_CMP_REQUEUE, a[0], 0) == EAGAIN;
    if (!held)
        return call(r);
    struct gt_timeout end = gt_timeout_at(CLOCK_REALTIME, (const struct timespec *)a[3]);
    GT_WAIT(wait) = gt_wait_begin_lock(GT_RAW_FUTEX_LOCK, GT_LOCK_PI, (const void *)a[0], &end);
    return call(r);
}

static long futex(const struct raw *r, const long a[WORDS])
{
    uint32_t bits = (uint32_t)a[5]; /* 0 is an error */
    switch ((int)a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return futex_wait(r, a, 0);
    case FUTEX_WAIT_BITSET: return bits ? futex_wait(r, a, bits) : call(r);
    case FUTEX_WAIT_REQUEUE_PI: return futex_wait(r, a, 0);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: return lock_pi(r);
    case FUTEX_UNLOCK_PI: wake(GT_RAW_FUTEX_UNLOCK, a[0], 1, 0); break;
    case FUTEX_WAKE: wake(GT_RAW_FUTEX_WAKE, a[0], a[2], 0); break;
    case FUTEX_WAKE_BITSET:
        if (bits)
            wake(GT_RAW_FUTEX_WAKE, a[0], a[2], bits);
        break;
    case FUTEX_WAKE_OP: wake_op(a); break;
    case FUTEX_REQUEUE: requeue(a, FUTEX_REQUEUE); break;
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI: requeue(a, FUTEX_CMP_REQUEUE); break;
    }
    return call(r);
}

/* The system calls of Linux 5.16 and 6.7, whose futexes are those of futex(2). */

/* Whether the kernel takes these flags and words. A futex has 32 bits, FUTEX2_SIZE_U32. */
static bool is_futex2(long flags, long value, long mask)
{
    enum { SIZE = 3, U32 = 2 };
    return (flags & SIZE) == U32 && !((value | mask) >> 32);
}

static long futex2_wait(const struct raw *r)
{
    long op = FUTEX_WAIT_BITSET | (r->a[3] & FUTEX_PRIVATE_FLAG);
    op |= r->a[5] == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
    const long a[WORDS] = {r->a[0], op, r->a[1], r->a[4], 0, r->a[2]};
    return is_futex2(r->a[3], r->a[1], r->a[2]) ? futex(r, a) : call(r);
}

/* With nr 0, futex_wake wakes no thread; futex(2) would wake one. */
static long futex2_wake(const struct raw *r)
{
    if ((int)r->a[2] && r->a[1] && is_futex2(r->a[3], 0, r->a[1]))
        wake(GT_RAW_FUTEX_WAKE, r->a[0], r->a[2], (uint32_t)r->a[1]);
    return call(r);
}

static long futex2_requeue(const struct raw *r)
{
    const struct gt_futex *two = (const struct gt_futex *)r->a[0];
    if (!gt_recording() || !gt_can_read(two, 2 * sizeof *two))
        return call(r);
    const long a[WORDS] = {(long)two[0].address,
                           two[0].flags & FUTEX_PRIVATE_FLAG,
                           r->a[2],
                           r->a[3],
                           (long)two[1].address,
                           (long)two[0].value};
    if (!(unsigned)r->a[1] && is_futex2(two[0].flags & two[1].flags, a[5], 0))
        requeue(a, FUTEX_CMP_REQUEUE);
    return call(r);
}

/* Runs also where the thread is cancelled in the call. */
static void leave_gate(const struct raw *const *gate)
{
    gt_futex_any_remove(*gate);
}

static long futex_waitv(const struct raw *r)
{
    const struct gt_futex *futexes = (const struct gt_futex *)r->a[0];
    unsigned n = (unsigned)r->a[1];
    if (!gt_recording() || !n || n > GT_FUTEX_ANY_MOST || (unsigned)r->a[2] ||
        !gt_can_read(futexes, n * sizeof *futexes))
        return call(r);
    struct gt_timeout end = gt_timeout_at((clockid_t)r->a[4], (const struct timespec *)r->a[3]);
    __attribute__((cleanup(leave_gate))) const struct raw *gate = r;
    gt_futex_any_add(gate, futexes, n);
    GT_WAIT(wait) = gt_wait_begin_for(&(struct gt_wait_for){.hook = GT_RAW_FUTEX_WAITV,
                                                            .reason = GT_REASON_SYNC,
                                                            .addr = r,
                                                            .kind = GT_LOCK_NONE,
                                                            .end = &end,
                                                            .final = true});
    long result = call(r);
    if (result < 0 && errno == ETIMEDOUT)
        gt_wait_expired(&wait, &end);
    return result;
}

/* How a call that may block shows. */
struct shown {
    enum gt_hook leaf;
    int on;
};

static struct shown shown_as(long number, const long a[WORDS])
{
    int fd = (int)a[0] >= 0 ? (int)a[0] : GT_FILE;
    switch (number) {
#define GT_RAW(what, name) \
    case SYS_##name:       \
        return (struct shown){GT_RAW_##name, what};
#define GT_RAW_FUTEX(id, text)
#include "preload/tables/raw.def"
    default: return (struct shown){GT_HOOK_NONE, GT_NOTHING};
    }
}

static bool makes_process(long number)
{
#ifdef SYS_fork
    if (number == SYS_fork)
        return true;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

/* A fork that libc does not know of: no fork handlers run. */
static long make_process(const struct raw *r)
{
    unsigned held = gt_fork_begin();
    long result = call(r);
    GT_KEEP_ERRNO;
    gt_fork_end(held);
    return result;
}

/* landlock(7), for which libc has no functions; the system's headers may be older than it. */
enum { LANDLOCK_RESTRICT_SELF = 446, LANDLOCK_ALL_THREADS = 1 << 3 };

/* Calls that the tracer must know of before they are made. */
static void about_to(long number, const long a[WORDS])
{
    if (number == SYS_exit)
        gt_thread_exit();
    else if (number == SYS_exit_group)
        gt_process_end(false);
    else if (number == SYS_execve || number == SYS_execveat)
        gt_process_before_exec();
    else if (number == SYS_seccomp)
        gt_seccomp_begins((unsigned long)a[0], (unsigned long)a[1], (const void *)a[2]);
    else if (number == SYS_prctl && a[0] == PR_SET_SECCOMP)
        gt_seccomp_begins_prctl((unsigned long)a[1], (const void *)a[2]);
    else if (number == LANDLOCK_RESTRICT_SELF)
        gt_process_confines(a[1] & LANDLOCK_ALL_THREADS);
}

GT_EXPORT long syscall(long number, ...)
{
    va_list ap;
    struct raw r = {.number = number, .from = GT_CALLER()};
    va_start(ap, number);
    for (int i = 0; i < WORDS; i++)
        r.a[i] = va_arg(ap, long);
    va_end(ap);
    switch (number) {
    case SYS_futex: return futex(&r, r.a);
    case SYS_futex_wait: return futex2_wait(&r);
    case SYS_futex_wake: return futex2_wake(&r);
    case SYS_futex_requeue: return futex2_requeue(&r);
    case SYS_futex_waitv: return futex_waitv(&r);
    }
    if (makes_process(number))
        return make_process(&r);
    about_to(number, r.a);
    struct shown shown = shown_as(number, r.a);
    if (shown.on == GT_NOTHING)
        return call(&r);
    GT_SLICE(slice) = gt_slice_begin(shown.leaf, shown.on);
    return call(&r);
}
