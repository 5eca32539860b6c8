/*
 * System calls without libc. Declarations that glibc 2.31, the oldest that we build for, and its
 * kernel headers lack. And fallbacks for functions that are missing at run time: the program may
 * run with an older glibc than the one we were built with.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Since Linux 5.9, 5.6, 5.6, 5.11, 5.16 and 6.7; the numbers are equal on all architectures. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#define FUTEX_LOCK_PI2 13 /* Linux 5.14; as <linux/futex.h> has it */
#define EM_LOONGARCH 258  /* as <elf.h> has it */

/* Since glibc 2.32; NULL with an older one. */
const char *strerrordesc_np(int error) __attribute__((weak));
const char *sigabbrev_np(int number) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

/*
 * Makes a system call, with up to six arguments of at most 64 bits. Like syscall(2), which the
 * program or another preload may define: returns -1 and sets errno on an error. Safe in signal
 * handlers and before init. The caller saves errno.
 */
#define gt_syscall(...) GT_SYSCALL(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define GT_SYSCALL(number, a, b, c, d, e, f, ...) \
    gt_syscall_of(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
long gt_syscall_of(long number, long a, long b, long c, long d, long e, long f);

/* stat(2), lstat(2) and fstat(2). On our architectures the kernel's struct stat is libc's. */
static inline int gt_stat(const char *path, struct stat *st)
{
    return (int)gt_syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline int gt_lstat(const char *path, struct stat *st)
{
    return (int)gt_syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline int gt_fstat(int fd, struct stat *st)
{
    return (int)gt_syscall(SYS_fstat, fd, st);
}

/* The English text of an errno. Unlike strerror, it takes no lock and no memory. */
const char *gt_libc_error(int error);

/* A signal's name without SIG: HUP, INT, …. NULL: the signal has none. */
const char *gt_libc_signal(int number);

/* Whether the process has a single thread, by libc's count; `guess` if this libc keeps none. */
static inline bool gt_libc_single_threaded(bool guess)
{
    return &__libc_single_threaded ? __libc_single_threaded : guess;
}
