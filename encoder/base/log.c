/* See log.h. No stdio stream is involved: the program may be holding its lock. */
#include "log.h"

#include "file.h"
#include "printable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum gt_log_quiet gt_log_quiet;

static struct stat stderr_file;

void gt_log_init(void)
{
    int saved = errno;
    if (gt_fstat(2, &stderr_file) != 0)
        stderr_file.st_ino = 0;
    errno = saved;
}

/* The major numbers that the kernel's list of devices gives to terminals, real and pseudo. */
bool gt_log_is_read(void)
{
    enum { TTY = 4, CONSOLE = 5, PTY = 136, PTY_LAST = 143 };
    unsigned type = gnu_dev_major(stderr_file.st_rdev);
    bool is_terminal = S_ISCHR(stderr_file.st_mode) && stderr_file.st_ino &&
                       (type == TTY || type == CONSOLE || (type >= PTY && type <= PTY_LAST));
    return is_terminal || gt_log_quiet == GT_QUIET_NOBODY;
}

static bool is_same(const struct stat *now)
{
    return now->st_ino == stderr_file.st_ino && now->st_dev == stderr_file.st_dev;
}

static bool is_stderr(int fd)
{
    struct stat now;
    return fd >= 0 && gt_fstat(fd, &now) == 0 && is_same(&now);
}

static _Atomic long apart; /* the thread of gt_log_apart */

/* What follows the words in a file of /proc; NULL: they are not there. */
static const char *behind(const char *path, const char *words, char text[static 4096])
{
    gt_file_read_text(path, text, 4096);
    const char *found = strstr(text, words);
    return found ? found + strlen(words) : NULL;
}

static _Atomic bool may_not_borrow;

/*
 * Whether the calling thread has a seccomp filter, which may end the process for pidfd_getfd(2), as
 * systemd's SystemCallFilter=@system-service does: a filter that was inherited cannot be read.
 * Asks the kernel itself where /proc is not mounted, or hundreds of groups come before the line.
 */
static bool is_filtered(void)
{
    char text[4096];
    const char *mode = behind("/proc/thread-self/status", "\nSeccomp:\t", text);
    return mode ? *mode == '2' : gt_syscall(SYS_prctl, PR_GET_SECCOMP) == 2; /* mode filter */
}

/* Filters that come later are looked at when the program installs them. */
void gt_log_apart(void)
{
    atomic_store(&may_not_borrow, is_filtered());
    atomic_store(&apart, gt_syscall(SYS_gettid));
}

static bool is_apart_as(long tid)
{
    return atomic_load(&apart) == tid;
}

static bool is_apart(void)
{
    return atomic_load(&apart) && is_apart_as(gt_syscall(SYS_gettid));
}

static _Atomic bool may_not_search;

void gt_log_forbid_search(void)
{
    atomic_store(&may_not_search, true);
}

static int borrow_from(long id, unsigned flags, int number)
{
    int pidfd = (int)gt_syscall(SYS_pidfd_open, id, flags);
    int fd = pidfd < 0 ? -1 : (int)gt_syscall(SYS_pidfd_getfd, pidfd, number, 0);
    if (pidfd >= 0)
        gt_syscall(SYS_close, pidfd);
    return fd;
}

/* Borrows from another thread than the first, which has ended and has no descriptors. Linux 6.9. */
static int borrow_from_others(int number)
{
    enum { OF_THREAD = O_EXCL }; /* PIDFD_THREAD */
    struct dirent64 *e;
    _Alignas(struct dirent64) char entries[1024];
    int fd = -1, dir = gt_file_open("/proc/self/task", O_DIRECTORY);
    long n = dir < 0 ? 0 : gt_syscall(SYS_getdents64, dir, entries, sizeof entries);
    for (long at = 0; fd < 0 && at < n; at += e->d_reclen) {
        e = (struct dirent64 *)(entries + at);
        long tid = strtol(e->d_name, NULL, 10);
        if (tid && !is_apart_as(tid))
            fd = borrow_from(tid, OF_THREAD, number);
    }
    if (dir >= 0)
        gt_file_close(dir);
    return fd;
}

/* Whether the program's descriptor writes at the end of its file: a line of ours may go there. */
static bool appends(int number)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", number);
    const char *flags = behind(path, "flags:\t", text);
    return flags && strtol(flags, NULL, 8) & O_APPEND;
}

/*
 * Opens the file anew, where pidfd_getfd(2) is refused, as in containers, or deadly. That works for
 * a pipe or a terminal. A regular file gets a position of its own, and so must be appended to. A
 * full pipe does not block the caller, and takes a line as a whole or not at all.
 */
static int reopen(int number)
{
    char path[32];
    struct stat now;
    snprintf(path, sizeof path, "/proc/self/fd/%d", number);
    bool good = gt_stat(path, &now) == 0 && is_same(&now) &&
                (S_ISFIFO(now.st_mode) || S_ISCHR(now.st_mode) || appends(number));
    return good ? gt_file_open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY) : -1;
}

/* Makes the program's descriptor one of the caller's, which shares none with the program. */
static int borrow(int number)
{
    if (atomic_load(&may_not_borrow))
        return reopen(number);
    int fd = borrow_from(gt_syscall(SYS_getpid), 0, number);
    if (fd < 0 && errno == ESRCH && !atomic_load(&may_not_search))
        return borrow_from_others(number);
    return fd < 0 && (errno == EPERM || errno == ENOSYS) ? reopen(number) : fd;
}

static bool say_to(int number, const char *line, size_t size)
{
    bool borrowed = is_apart();
    int fd = borrowed ? borrow(number) : number;
    bool ours = is_stderr(fd);
    if (ours)
        gt_syscall(SYS_write, fd, line, size);
    if (borrowed && fd >= 0)
        gt_syscall(SYS_close, fd);
    return ours;
}

static _Atomic int kept; /* the duplicate's number, 0: there is none */

/* Duplicates standard error to a number that the program's next descriptors will not have. */
static int duplicate(void)
{
    enum { HIGH = 1000 };
    struct rlimit64 limit = {HIGH, HIGH};
    int fd = (int)gt_syscall(SYS_fcntl, 2, F_DUPFD_CLOEXEC, HIGH);
    if (fd < 0 && gt_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0)
        fd = (int)gt_syscall(SYS_fcntl, 2, F_DUPFD_CLOEXEC, limit.rlim_cur - 1);
    return fd;
}

bool gt_log_keep(void)
{
    if (gt_log_quiet == GT_QUIET_ALL || atomic_load(&kept) || !is_stderr(2))
        return false;
    int fd = duplicate();
    if (fd > 0)
        atomic_store(&kept, fd);
    return fd > 0;
}

void gt_log_let_go(void)
{
    int fd = atomic_load(&kept) && !is_apart() ? atomic_exchange(&kept, 0) : 0;
    if (fd && is_stderr(fd)) /* the program may have closed all descriptors */
        gt_syscall(SYS_close, fd);
}

static bool say(const char *line, size_t size)
{
    int fd = atomic_load(&kept);
    return say_to(2, line, size) || (fd && say_to(fd, line, size));
}

static bool say_formatted(const char *format, va_list ap)
{
    char line[GT_LOG_LINE] = "gotrace: ";
    enum { PREFIX = 9 };
    if (gt_log_quiet == GT_QUIET_ALL)
        return true;
    int saved = errno;
    int n = vsnprintf(line + PREFIX, sizeof line - PREFIX - 1, format, ap);
    if (n > (int)sizeof line - PREFIX - 2)
        n = (int)sizeof line - PREFIX - 2;
    n = n < 0 ? 0 : n;
    gt_make_printable(line + PREFIX, (size_t)n);
    line[PREFIX + n] = '\n';
    bool said = say(line, (size_t)PREFIX + (size_t)n + 1);
    errno = saved;
    return said;
}

bool gt_log(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    bool said = say_formatted(format, ap);
    va_end(ap);
    return said;
}

static bool is_child;

void gt_log_be_child(void)
{
    is_child = true;
}

bool gt_log_note(const char *format, ...)
{
    if (is_child && gt_log_quiet == GT_QUIET_CHILDREN)
        return true;
    va_list ap;
    va_start(ap, format);
    bool said = say_formatted(format, ap);
    va_end(ap);
    return said;
}
