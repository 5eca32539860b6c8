/*
 * Declarations of libc functions that programs call, but that libc's headers do not declare for us.
 * - _FORTIFY_SOURCE puts some of them in place of other functions.
 * - The compilers' libraries call some of them.
 * - Some are newer than the glibc with which we are built.
 */
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <wchar.h>

/* With optimization, libc's headers define these as macros. */
#undef fread_unlocked
#undef fwrite_unlocked
#undef getc_unlocked
#undef putc_unlocked

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t size);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t size);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *from,
                       socklen_t *from_n);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t size);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t size);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t n, size_t size);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
void __longjmp_chk(sigjmp_buf env, int value) __attribute__((noreturn));
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso_handle);
extern void *__dso_handle __attribute__((visibility("hidden")));
int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t __sysv_signal(int number, sighandler_t handler);
size_t __fread_chk(void *buf, size_t size, size_t n, size_t count, FILE *file);
size_t __fread_unlocked_chk(void *buf, size_t size, size_t n, size_t count, FILE *file);
int _IO_getc(FILE *file);
int _IO_putc(int c, FILE *file);
char *gets(char *buf);
char *__gets_chk(char *buf, size_t size);
int __uflow(FILE *file);
int __overflow(FILE *file, int c);
wchar_t *__fgetws_chk(wchar_t *buf, size_t size, int n, FILE *file);
wchar_t *__fgetws_unlocked_chk(wchar_t *buf, size_t size, int n, FILE *file);
int __isoc99_scanf(const char *format, ...);
int __isoc99_fscanf(FILE *file, const char *format, ...);
int __isoc99_vscanf(const char *format, va_list ap);
int __isoc99_vfscanf(FILE *file, const char *format, va_list ap);
int __isoc99_wscanf(const wchar_t *format, ...);
int __isoc99_fwscanf(FILE *file, const wchar_t *format, ...);
int __isoc99_vwscanf(const wchar_t *format, va_list ap);
int __isoc99_vfwscanf(FILE *file, const wchar_t *format, va_list ap);
int __isoc23_scanf(const char *format, ...);
int __isoc23_fscanf(FILE *file, const char *format, ...);
int __isoc23_vscanf(const char *format, va_list ap);
int __isoc23_vfscanf(FILE *file, const char *format, va_list ap);
int __isoc23_wscanf(const wchar_t *format, ...);
int __isoc23_fwscanf(FILE *file, const wchar_t *format, ...);
int __isoc23_vwscanf(const wchar_t *format, va_list ap);
int __isoc23_vfwscanf(FILE *file, const wchar_t *format, va_list ap);
int __vwprintf_chk(int flag, const wchar_t *format, va_list ap);
int __vfwprintf_chk(FILE *file, int flag, const wchar_t *format, va_list ap);
int __wprintf_chk(int flag, const wchar_t *format, ...);
int __fwprintf_chk(FILE *file, int flag, const wchar_t *format, ...);
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);
void __syslog_chk(int priority, int flag, const char *format, ...);
void __vsyslog_chk(int priority, int flag, const char *format, va_list ap);
int __xpg_sigpause(int signal);
char *__fgets_chk(char *buf, size_t size, int n, FILE *file);
char *__fgets_unlocked_chk(char *buf, size_t size, int n, FILE *file);
int __vfprintf_chk(FILE *file, int flag, const char *format, va_list ap);
int __vprintf_chk(int flag, const char *format, va_list ap);
int __fprintf_chk(FILE *file, int flag, const char *format, ...);
int __printf_chk(int flag, const char *format, ...);
int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags);
pid_t _Fork(void);
void closefrom(int first);
int close_range(unsigned first, unsigned last, int flags);
int pidfd_spawn(int *fd, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int pidfd_spawnp(int *fd, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
                 const sigset_t *mask);
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t alignment, size_t size);

/* The result of mallinfo2, which glibc has since 2.33. */
struct gt_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

int openat2(int dir, const char *path, const struct open_how *how, size_t n);
