/*
 * syscall(2): how Rust's std, C++20's atomic::wait and many libraries reach futexes. Waiters and
 * wakers meet in the same registry as those of libc's own primitives. Other system calls that
 * may block show as slices.
 */
#include "call.h"
#include "process.h"
#include "seccomp.h"
#include "wait.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define WORDS 6

static const enum gt_hook HOOK = GT_HOOK_syscall;

static long call(long number, const long a[WORDS])
{
    return gt_real.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static uint32_t word_at(const long address)
{
    return __atomic_load_n((const uint32_t *)address, __ATOMIC_RELAXED);
}

/* Waits, if the word still has the value: else the kernel will answer EAGAIN at once. */
static long futex_wait(long number, const long a[WORDS], uint32_t bits)
{
    if (!gt_recording() || word_at(a[0]) != (uint32_t)a[2])
        return call(number, a);
    GT_WAIT(wait) = gt_wait_begin_for(&(struct gt_wait_for){.hook = HOOK,
                                                            .reason = GT_REASON_SYNC,
                                                            .addr = (const void *)a[0],
                                                            .bits = bits,
                                                            .final = true});
    return call(number, a);
}

static void wake(long address, long max, uint32_t bits)
{
    if (__builtin_expect(gt_registry_any((const void *)address), 0))
        gt_wake_slow(&(struct gt_wake){.hook = HOOK,
                                       .addr = (const void *)address,
                                       .max = max < 1 ? 1 : (uint32_t)max,
                                       .bits = bits});
}

/* futex(2), FUTEX_WAKE_OP: whether the old value of the second word lets its waiters go too. */
static bool wake_op_compares(long address, uint32_t op)
{
    int32_t old = (int32_t)word_at(address), arg = (int32_t)(op << 20) >> 20;
    switch (op >> 24 & 15) {
    case FUTEX_OP_CMP_EQ: return old == arg;
    case FUTEX_OP_CMP_NE: return old != arg;
    case FUTEX_OP_CMP_LT: return old < arg;
    case FUTEX_OP_CMP_LE: return old <= arg;
    case FUTEX_OP_CMP_GT: return old > arg;
    default: return old >= arg;
    }
}

static void requeue(const long a[WORDS], bool compare)
{
    if (!gt_registry_any((const void *)a[0]) || (compare && word_at(a[0]) != (uint32_t)a[5]))
        return;
    if (a[2] > 0)
        wake(a[0], a[2], 0);
    if (a[3] > 0)
        gt_registry_move((const void *)a[0], (const void *)a[4], (uint32_t)a[3]);
}

static long lock_pi(long number, const long a[WORDS])
{
    if ((word_at(a[0]) & FUTEX_TID_MASK) == 0)
        return call(number, a);
    GT_WAIT(wait) = gt_wait_begin(HOOK, GT_REASON_SYNC, (const void *)a[0]);
    return call(number, a);
}

/* Where no word can be; the kernel's EFAULT is the program's to see. */
#define LOWEST_ADDRESS 4096ul

static long futex(long number, const long a[WORDS])
{
    if ((unsigned long)a[0] < LOWEST_ADDRESS)
        return call(number, a);
    switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return futex_wait(number, a, 0);
    case FUTEX_WAIT_BITSET: return futex_wait(number, a, (uint32_t)a[5]);
    case FUTEX_WAIT_REQUEUE_PI: return futex_wait(number, a, 0);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: return lock_pi(number, a);
    case FUTEX_UNLOCK_PI: wake(a[0], 1, 0); break;
    case FUTEX_WAKE: wake(a[0], a[2], 0); break;
    case FUTEX_WAKE_BITSET: wake(a[0], a[2], (uint32_t)a[5]); break;
    case FUTEX_WAKE_OP:
        wake(a[0], a[2], 0);
        if (gt_registry_any((const void *)a[4]) && wake_op_compares(a[4], (uint32_t)a[5]))
            wake(a[4], a[3], 0);
        break;
    case FUTEX_REQUEUE: requeue(a, false); break;
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI: requeue(a, true); break;
    }
    return call(number, a);
}

/* What the call works on, where it may block. */
static int blocks_on(long number, const long a[WORDS])
{
    switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev: return a[0] >= 0 ? (int)a[0] : GT_FILE;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_epoll_wait /* only the older architectures have these */
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait2: return GT_NETWORK;
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_openat:
    case SYS_openat2:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_msync:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_copy_file_range:
    case SYS_flock:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    case SYS_getrandom:
    case SYS_ioctl:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex_waitv: return GT_FILE;
    default: return GT_NOTHING;
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

/* libc does not know of it and runs no fork handlers. */
static long make_process(long number, const long a[WORDS])
{
    unsigned held = gt_process_before_fork();
    long r = call(number, a);
    int saved = errno;
    gt_process_after_fork(held);
    errno = saved;
    return r;
}

/* What has to be known beforehand. */
static void about_to(long number, const long a[WORDS])
{
    if (number == SYS_exit)
        gt_thread_exit();
    else if (number == SYS_exit_group)
        gt_process_end();
    else if (number == SYS_execve || number == SYS_execveat)
        gt_process_before_exec();
    else if (number == SYS_seccomp)
        gt_seccomp_begins((unsigned long)a[0], (unsigned long)a[1], (const void *)a[2]);
    else if (number == SYS_prctl && a[0] == PR_SET_SECCOMP)
        gt_seccomp_begins_prctl((unsigned long)a[1], (const void *)a[2]);
}

GT_EXPORT long syscall(long number, ...)
{
    va_list ap;
    long a[WORDS];
    va_start(ap, number);
    for (int i = 0; i < WORDS; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_futex)
        return futex(number, a);
    if (makes_process(number))
        return make_process(number, a);
    about_to(number, a);
    int on = blocks_on(number, a);
    if (on == GT_NOTHING)
        return call(number, a);
    GT_SLICE(slice) = gt_slice_begin(HOOK, on);
    return call(number, a);
}
