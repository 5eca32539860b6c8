/*
 * Declarations that glibc 2.31, the oldest that we build for, and its kernel headers lack. And
 * fallbacks for functions that are missing at run time: the program may run with an older glibc
 * than the one we were built with.
 */
#pragma once

#include <stdbool.h>
#include <sys/syscall.h>

/* Since Linux 5.9, 5.6, 5.6, 5.11 and 5.16; the numbers are equal on all architectures. */
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
#define FUTEX_LOCK_PI2 13 /* Linux 5.14; as <linux/futex.h> has it */
#define EM_LOONGARCH 258  /* as <elf.h> has it */

/* Since glibc 2.32; NULL with an older one. */
const char *strerrordesc_np(int error) __attribute__((weak));
const char *sigabbrev_np(int number) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

/*
 * libc's functions of these names, which preload/ interposes. Pointers, like gt_syscall of futex.h.
 */
struct stat;
extern int (*gt_stat)(const char *path, struct stat *st);
extern int (*gt_lstat)(const char *path, struct stat *st);
extern int (*gt_fstat)(int fd, struct stat *st);

/* The English text of an errno. Unlike strerror, it takes no lock and no memory. */
const char *gt_libc_error(int error);

/* A signal's name without SIG: HUP, INT, …. NULL: the signal has none. */
const char *gt_libc_signal(int number);

/* Whether the process has a single thread, by libc's count; `guess` if this libc keeps none. */
static inline bool gt_libc_single_threaded(bool guess)
{
    return &__libc_single_threaded ? __libc_single_threaded : guess;
}
