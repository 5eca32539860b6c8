/*
 * What glibc 2.31, the oldest that we are built for, and its kernel's headers do not declare, and
 * what stands for it where it is not there at run time either: that may be an older glibc than we
 * were built with.
 */
#ifndef GT_LIBC_H
#define GT_LIBC_H

#include <stdbool.h>
#include <sys/syscall.h>

/* Since 5.9, 5.6, 5.6, 5.11 and 5.16; the same on all architectures. */
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

/* glibc 2.32. NULL in one before that. */
const char *strerrordesc_np(int error) __attribute__((weak));
const char *sigabbrev_np(int number) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

/* libc's functions of these names, which preload/ interposes: as gt_syscall of futex.h. */
struct stat;
extern int (*gt_stat)(const char *path, struct stat *st);
extern int (*gt_lstat)(const char *path, struct stat *st);
extern int (*gt_fstat)(int fd, struct stat *st);

/* What an errno means, in English: no lock, no memory, unlike strerror. */
const char *gt_libc_error(int error);

/* HUP, INT, …: a signal's name without SIG. NULL: it has none. */
const char *gt_libc_signal(int number);

/* Whether the process has one thread, as far as libc knows; `guess`: where it does not say so. */
static inline bool gt_libc_single_threaded(bool guess)
{
    return &__libc_single_threaded ? __libc_single_threaded : guess;
}

#endif
