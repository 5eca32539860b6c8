/* The hooks of calls.def, and the calls whose parameters a row cannot express. */
#include "channels.h"
#include "fds.h"
#include "slice.h"
#include "wait.h"

#include "preload/process.h"

#include <stdarg.h>

/* Two new descriptors, when the call that made them has returned 0. */
static int forget_pair(int result, const int fds[2])
{
    if (result == 0)
        gt_fd_forget(fds[0]), gt_fd_forget(fds[1]);
    return result;
}

/* When a sleep is over, by its arguments. */

static struct gt_timeout end_of_sleep(unsigned seconds)
{
    return gt_timeout_for(&(struct timespec){.tv_sec = seconds});
}

static struct gt_timeout end_of_usleep(useconds_t us)
{
    return gt_timeout_after(us * 1000ull);
}

static struct gt_timeout end_of_nanosleep(const struct timespec *time, const struct timespec *left)
{
    (void)left;
    return gt_timeout_for(time);
}

static struct gt_timeout end_of_thrd_sleep(const struct timespec *time, const struct timespec *left)
{
    return end_of_nanosleep(time, left);
}

static struct gt_timeout end_of_clock_nanosleep(clockid_t clock, int flags,
                                                const struct timespec *time,
                                                const struct timespec *left)
{
    (void)left;
    if (flags & TIMER_ABSTIME)
        return gt_timeout_at(clock, time);
    return gt_timeout_is_time(clock) ? gt_timeout_for(time) : gt_timeout_after(0);
}

/* When a poll ends for want of anything else. */

static struct gt_timeout end_of_ms(int ms)
{
    return gt_timeout_after(ms > 0 && ms < 3600000 ? (uint64_t)ms * 1000000 : 0);
}

#define END_OF(timeout) \
    _Generic((timeout),                           \
        int: end_of_ms,                           \
        const struct timespec *: gt_timeout_for,  \
        struct timeval *: gt_timeout_for_timeval)(timeout)

/*
 * Calls that return at once. That is no wait, however long the kernel takes for it, and most of the
 * calls of many a server: they are announced only where all calls are shown. What is behind a
 * pointer is not known yet.
 */

static bool is_zero(int ms)
{
    return ms == 0;
}

static bool is_unknown(const void *timeout)
{
    (void)timeout;
    return false;
}

#define RETURNS_AT_ONCE(timeout) \
    _Generic((timeout),                           \
        int: is_zero,                             \
        const struct timespec *: is_unknown,      \
        struct timeval *: is_unknown)(timeout)

#define GT_CALL(what, result, name, parameters, arguments)         \
    GT_EXPORT result name parameters                               \
    {                                                              \
        GT_SLICE(gt_slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return gt_real.name arguments;                             \
    }
#define MOVES(what, at, result, name, parameters, arguments)       \
    GT_EXPORT result name parameters                               \
    {                                                              \
        GT_SLICE(gt_slice) = gt_slice_begin(GT_HOOK_##name, what); \
        gt_slice.bytes = at;                                       \
        return gt_slice.moved = gt_real.name arguments;            \
    }
/* What an eventfd has counted is 8 bytes, which only a success has moved. */
#define EVENT(at, result, name, parameters, arguments)         \
    GT_EXPORT result name parameters                           \
    {                                                          \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, fd);  \
        slice.bytes = at;                                      \
        result r = gt_real.name arguments;                     \
        slice.moved = r == 0 ? (int64_t)sizeof(eventfd_t) : r; \
        return r;                                              \
    }
#define READS_EVENT(...) EVENT(value, __VA_ARGS__)
#define WRITES_EVENT(...) EVENT(&value, __VA_ARGS__)
#define SYNC(result, name, parameters, arguments)                  \
    GT_EXPORT result name parameters                               \
    {                                                              \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        gt_real.name arguments;                                    \
    }
#define GT_READS MOVES
#define GT_WRITES MOVES
#define GT_NEW_FD(what, name, parameters, arguments)            \
    GT_EXPORT int name parameters                               \
    {                                                           \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return gt_fd_forget(gt_real.name arguments);            \
    }
#define GT_ROW(how, result, name, parameters, arguments) how(result, name, parameters, arguments)
#define NEW(result, name, parameters, arguments)     \
    GT_EXPORT result name parameters                 \
    {                                                \
        return gt_fd_forget(gt_real.name arguments); \
    }
#define CONNECT(result, name, parameters, arguments)                  \
    GT_EXPORT result name parameters                                  \
    {                                                                 \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_NETWORK); \
        gt_fd_forget(fd);                                             \
        return gt_real.name arguments;                                \
    }
#define DUP(result, name, parameters, arguments)                          \
    GT_EXPORT result name parameters                                      \
    {                                                                     \
        return gt_channel_copy(fd, gt_fd_forget(gt_real.name arguments)); \
    }
#define NEW_EVENT(result, name, parameters, arguments)                    \
    GT_EXPORT result name parameters                                      \
    {                                                                     \
        return gt_channel_of_event(gt_fd_forget(gt_real.name arguments)); \
    }
#define NEW_SOCKETS(result, name, parameters, arguments)                           \
    GT_EXPORT result name parameters                                               \
    {                                                                              \
        return gt_channels_of_pair(forget_pair(gt_real.name arguments, fds), fds); \
    }
#define NEW_PAIR(result, name, parameters, arguments)    \
    GT_EXPORT result name parameters                     \
    {                                                    \
        return forget_pair(gt_real.name arguments, fds); \
    }
#define SLEEP(result, name, parameters, arguments)                            \
    GT_EXPORT result name parameters                                          \
    {                                                                         \
        struct gt_timeout end = end_of_##name arguments;                      \
        GT_WAIT(wait) = gt_wait_begin_for(&(struct gt_wait_for){              \
            .hook = GT_HOOK_##name, .reason = GT_REASON_SLEEP, .end = &end}); \
        result r = gt_real.name arguments;                                    \
        if (r == 0)                                                           \
            gt_wait_expired(&wait, &end);                                     \
        return r;                                                             \
    }
#define POLL(result, name, parameters, arguments)                     \
    GT_EXPORT result name parameters                                  \
    {                                                                 \
        if (RETURNS_AT_ONCE(timeout) && gt_slice_is_left_out())       \
            return gt_real.name arguments;                            \
        struct gt_timeout end = END_OF(timeout);                      \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_NETWORK); \
        gt_slice_ends(&slice, &end);                                  \
        result r = gt_real.name arguments;                            \
        slice.moved = r;                                              \
        if (r == 0)                                                   \
            gt_slice_expired(&slice, &end);                           \
        return r;                                                     \
    }
#define MESSAGES(result, name, parameters, arguments)                 \
    GT_EXPORT result name parameters                                  \
    {                                                                 \
        if (flags & MSG_DONTWAIT && gt_slice_is_left_out())           \
            return gt_real.name arguments;                            \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_NETWORK); \
        return gt_real.name arguments;                                \
    }
#define MESSAGE(what, result, name, parameters, arguments)      \
    GT_EXPORT result name parameters                            \
    {                                                           \
        if (flags & MSG_DONTWAIT && gt_slice_is_left_out())     \
            return gt_real.name arguments;                      \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return slice.moved = gt_real.name arguments;            \
    }
#define SEND(...) MESSAGE(GT_SOCKET(fd), __VA_ARGS__)
/* As what it looks into does not leave the stream, or is waited for longer, that is not told. */
#define RECEIVE(...)                                                                               \
    MESSAGE(flags &(MSG_PEEK | MSG_WAITALL | MSG_OOB | MSG_ERRQUEUE) ? GT_NETWORK : GT_SOCKET(fd), \
            __VA_ARGS__)
#define EXEC(result, name, parameters, arguments) \
    GT_EXPORT result name parameters              \
    {                                             \
        gt_process_before_exec();                 \
        return gt_real.name arguments;            \
    }
#include "calls.def"

/* Opening. The mode is there only where the flags say so, and is read only then. */

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name, parameters, arguments)                          \
    GT_EXPORT int name parameters                                  \
    {                                                              \
        va_list ap;                                                \
        va_start(ap, flags);                                       \
        mode_t mode = mode_of(flags, ap);                          \
        va_end(ap);                                                \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        return gt_fd_forget(gt_real.name arguments);               \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

/* One more word, of whatever type, is all that libc itself passes on. */

static int control(enum gt_hook hook, int (*real)(int, int, ...), int fd, int command, void *arg)
{
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return gt_channel_copy(fd, gt_fd_forget(real(fd, command, arg)));
    if (command == F_SETPIPE_SZ)
        gt_fd_forget(fd);
    if (command != F_SETLKW && command != F_OFD_SETLKW)
        return real(fd, command, arg);
    GT_SLICE(slice) = gt_slice_begin(hook, GT_FILE);
    return real(fd, command, arg);
}

#define FCNTL(name)                                                     \
    GT_EXPORT int name(int fd, int command, ...)                        \
    {                                                                   \
        va_list ap;                                                     \
        va_start(ap, command);                                          \
        void *arg = va_arg(ap, void *);                                 \
        va_end(ap);                                                     \
        return control(GT_HOOK_##name, gt_real.name, fd, command, arg); \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

GT_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_ioctl, GT_FILE);
    return gt_real.ioctl(fd, request, arg);
}

/* Return when the child has called exec, or has failed to. */

#define SPAWN(name)                                                                           \
    GT_EXPORT int name(int *pid, const char *path, const posix_spawn_file_actions_t *actions, \
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) \
    {                                                                                         \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);                            \
        return gt_real.name(pid, path, actions, attr, argv, envp);                            \
    }

SPAWN(posix_spawn)
SPAWN(posix_spawnp)
SPAWN(pidfd_spawn)
SPAWN(pidfd_spawnp)

/*
 * Reading a whole directory. A filter and an order of the program's are its own code, whose waits
 * would be hidden in this call: what then waits for the disk is not seen.
 */

#define SCAN(name, parameters, arguments, by_name, by_version)                  \
    GT_EXPORT int name parameters                                               \
    {                                                                           \
        if (filter || (compare && compare != by_name && compare != by_version)) \
            return gt_real.name arguments;                                      \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);              \
        return gt_real.name arguments;                                          \
    }
#define SCAN_PARAMETERS(entry)                                                   \
    const char *path, struct entry ***list, int (*filter)(const struct entry *), \
        int (*compare)(const struct entry **, const struct entry **)

SCAN(scandir, (SCAN_PARAMETERS(dirent)), (path, list, filter, compare), alphasort, versionsort)
SCAN(scandir64, (SCAN_PARAMETERS(dirent64)), (path, list, filter, compare), alphasort64,
     versionsort64)
SCAN(scandirat, (int dir, SCAN_PARAMETERS(dirent)), (dir, path, list, filter, compare), alphasort,
     versionsort)
SCAN(scandirat64, (int dir, SCAN_PARAMETERS(dirent64)), (dir, path, list, filter, compare),
     alphasort64, versionsort64)

GT_EXPORT int sched_yield(void)
{
    uint64_t since = gt_yield_begin();
    int result = gt_real.sched_yield();
    gt_yield_end(GT_HOOK_sched_yield, since);
    return result;
}

GT_EXPORT void thrd_yield(void)
{
    uint64_t since = gt_yield_begin();
    gt_real.thrd_yield();
    gt_yield_end(GT_HOOK_thrd_yield, since);
}
