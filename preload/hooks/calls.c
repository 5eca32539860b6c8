/* The hooks of calls.def, and the calls whose parameters a row cannot express. */
#include "thread_names.h"
#include "yield.h"

#include "preload/bind/real.h"
#include "preload/life/process_end.h"
#include "preload/stacks/code_layouts.h"
#include "preload/waits/channels.h"
#include "preload/waits/fds.h"
#include "preload/waits/file_locks.h"
#include "preload/waits/slice.h"
#include "preload/waits/wait.h"

#include <stdarg.h>

/* Forgets two descriptors that are new if the call that makes them returned 0. */
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
    return gt_timeout_is_time(clock) ? gt_timeout_for(time) : gt_timeout_none();
}

/* When a poll times out, by its arguments. */

static struct gt_timeout end_of_ms(int ms)
{
    return ms >= 0 && ms < 3600000 ? gt_timeout_after((uint64_t)ms * 1000000) : gt_timeout_none();
}

#define END_OF(timeout) \
    _Generic((timeout),                           \
        int: end_of_ms,                           \
        const struct timespec *: gt_timeout_for,  \
        struct timeval *: gt_timeout_for_timeval)(timeout)

/*
 * Polls that return at once. They are no waits, however long the kernel takes, and they are most
 * calls of many servers. So they are announced only where all calls are shown. A timeout behind a
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

/*
 * Whether the program chose the address of a socket, so that others know where to send. A client
 * leaves the port, or the name, to the kernel. IPv6 addresses have their port where IPv4 has it.
 * The address may be bad even after success: a seccomp filter can answer in the kernel's place, and
 * a library may have a function of that name with other parameters.
 */
static bool is_chosen(const struct sockaddr *at, socklen_t n)
{
    if (n <= sizeof at->sa_family || !gt_can_read(at, n < sizeof *at ? n : sizeof *at))
        return false;
    bool ip = at->sa_family == AF_INET || at->sa_family == AF_INET6;
    return ip ? n >= sizeof *at && ((const struct sockaddr_in *)at)->sin_port != 0
              : at->sa_family == AF_UNIX;
}

/* After a successful bind: whether others can now send to fd first, without a connection. */
static bool is_reachable(int fd, const struct sockaddr *at, socklen_t n)
{
    return gt_recording() && is_chosen(at, n) && gt_channel_gets_datagrams(fd);
}

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
/* An eventfd's value is 8 bytes, which only a successful call has moved. */
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
/* The call is over before a name that it writes is taken: a thread in a call cannot get one. */
#define WRITE(result, name, parameters, arguments)                \
    GT_EXPORT result name parameters                              \
    {                                                             \
        ssize_t moved;                                            \
        {                                                         \
            GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, fd); \
            slice.bytes = buf;                                    \
            moved = slice.moved = gt_real.name arguments;         \
        }                                                         \
        return gt_thread_names_written(fd, buf, moved);           \
    }
#define GT_NEW_FD(what, name, parameters, arguments)               \
    GT_EXPORT int name parameters                                  \
    {                                                              \
        GT_SLICE(gt_slice) = gt_slice_begin(GT_HOOK_##name, what); \
        int gt_made = gt_fd_forget(gt_real.name arguments);        \
        if ((what) == GT_NETWORK && gt_made >= 0)                  \
            gt_slice_made(&gt_slice, GT_MADE_ACCEPT);              \
        return gt_made;                                            \
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
        result r = gt_real.name arguments;                            \
        if (r == 0 || errno == EINPROGRESS)                           \
            gt_slice_made(&slice, GT_MADE_CONNECT);                   \
        return r;                                                     \
    }
#define BIND(result, name, parameters, arguments)                      \
    GT_EXPORT result name parameters                                   \
    {                                                                  \
        result r = gt_real.name arguments;                             \
        if (r == 0 && is_reachable(fd, at, n)) {                       \
            GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
            gt_slice_made(&slice, GT_MADE_BIND);                       \
        }                                                              \
        return r;                                                      \
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
#define SLEEP(result, name, parameters, arguments)                 \
    GT_EXPORT result name parameters                               \
    {                                                              \
        struct gt_timeout end = end_of_##name arguments;           \
        GT_WAIT(wait) = gt_wait_begin_sleep(GT_HOOK_##name, &end); \
        result r = gt_real.name arguments;                         \
        if (r == 0)                                                \
            gt_wait_expired(&wait, &end);                          \
        return r;                                                  \
    }
/*
 * Without descriptors it is a sleep: time.sleep of Python up to 3.10 is a select. Without a
 * timeout, too, it waits for a signal, as pause does.
 */
#define POLL(result, name, parameters, arguments)                              \
    GT_EXPORT result name parameters                                           \
    {                                                                          \
        if (RETURNS_AT_ONCE(timeout) && gt_slice_is_left_out())                \
            return gt_real.name arguments;                                     \
        struct gt_timeout end = END_OF(timeout);                               \
        int on = n ? GT_NETWORK : gt_timeout_is_set(&end) ? GT_TIME : GT_FILE; \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, on);                  \
        gt_slice_ends(&slice, &end);                                           \
        result r = gt_real.name arguments;                                     \
        slice.moved = r;                                                       \
        if (r == 0)                                                            \
            gt_slice_expired(&slice, &end);                                    \
        return r;                                                              \
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
/*
 * Calls that only look into the stream (MSG_PEEK), or that are waited for longer, tell no stream's
 * name.
 */
#define RECEIVE(...)                                                                               \
    MESSAGE(flags &(MSG_PEEK | MSG_WAITALL | MSG_OOB | MSG_ERRQUEUE) ? GT_NETWORK : GT_SOCKET(fd), \
            __VA_ARGS__)
#define FLOCK(result, name, parameters, arguments)                 \
    GT_EXPORT result name parameters                               \
    {                                                              \
        if (operation & LOCK_UN)                                   \
            gt_file_lock_unflock(GT_HOOK_##name, fd);              \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE); \
        result r = gt_real.name arguments;                         \
        if (r == 0 && !(operation & LOCK_UN) && slice.thread)      \
            gt_file_lock_flocked(fd, slice.since, GT_CALLER());    \
        return r;                                                  \
    }
#define LOCKF(result, name, parameters, arguments)                                               \
    GT_EXPORT result name parameters                                                             \
    {                                                                                            \
        struct flock what = {                                                                    \
            .l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK, .l_whence = SEEK_CUR, .l_len = n}; \
        if (command == F_ULOCK)                                                                  \
            gt_file_lock_unrecord(GT_HOOK_##name, fd, &what);                                    \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);                               \
        result r = gt_real.name arguments;                                                       \
        if (r == 0 && command != F_TEST && slice.thread)                                         \
            gt_file_lock_recorded(GT_HOOK_##name, fd, &what, slice.since, GT_CALLER());          \
        return r;                                                                                \
    }
#define EXEC(result, name, parameters, arguments) \
    GT_EXPORT result name parameters              \
    {                                             \
        gt_process_before_exec();                 \
        return gt_real.name arguments;            \
    }
#include "preload/tables/calls.def"

/* Opening. The mode argument exists only if the flags say so, and is read only then. */

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define OPEN(name, parameters, arguments)                           \
    GT_EXPORT int name parameters                                   \
    {                                                               \
        va_list ap;                                                 \
        va_start(ap, flags);                                        \
        mode_t mode = mode_of(flags, ap);                           \
        va_end(ap);                                                 \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_FILE);  \
        int fd = gt_fd_forget(gt_real.name arguments);              \
        return gt_thread_names_opened(fd, path, flags & O_ACCMODE); \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

/* Record locks. Only calls that may wait are shown. */
static int lock_record(enum gt_hook hook, int (*real)(int, int, ...), int fd, int command,
                       struct flock *what, const void *pc)
{
    gt_file_lock_unrecord(hook, fd, what);
    bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
    GT_SLICE(slice) = waits ? gt_slice_begin(hook, GT_FILE) : (struct gt_slice){.thread = NULL};
    int result = real(fd, command, what);
    if (result == 0 && (slice.thread || !waits))
        gt_file_lock_recorded(hook, fd, what, slice.since, pc);
    return result;
}

/* libc itself passes on one more word of any type, and nothing else. */

static int control(enum gt_hook hook, int (*real)(int, int, ...), int fd, int command, void *arg,
                   const void *pc)
{
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return gt_channel_copy(fd, gt_fd_forget(real(fd, command, arg)));
    if (command == F_SETPIPE_SZ)
        gt_fd_forget(fd);
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
        command == F_OFD_SETLKW)
        return lock_record(hook, real, fd, command, arg, pc);
    return real(fd, command, arg);
}

#define FCNTL(name)                                                                  \
    GT_EXPORT int name(int fd, int command, ...)                                     \
    {                                                                                \
        va_list ap;                                                                  \
        va_start(ap, command);                                                       \
        void *arg = va_arg(ap, void *);                                              \
        va_end(ap);                                                                  \
        return control(GT_HOOK_##name, gt_real.name, fd, command, arg, GT_CALLER()); \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* Closing. */

static void forget_from(enum gt_hook hook, unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < GT_FDS; fd++) {
        gt_file_lock_close(hook, (int)fd);
        if (gt_fd_kind[fd])
            gt_fd_forget((int)fd);
    }
}

/* The kind is forgotten before the real call: afterwards the number may be in use again. */
GT_EXPORT int close(int fd)
{
    gt_file_lock_close(GT_HOOK_close, fd);
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_close, GT_FILE);
    return gt_real.close(gt_fd_forget(fd));
}

GT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    enum { ONLY_AT_EXEC = 4 /* CLOSE_RANGE_CLOEXEC, which older headers lack */ };
    if (!(flags & ONLY_AT_EXEC))
        forget_from(GT_HOOK_close_range, first, last);
    return gt_real.close_range(first, last, flags);
}

GT_EXPORT void closefrom(int first)
{
    forget_from(GT_HOOK_closefrom, first < 0 ? 0 : (unsigned)first, GT_FDS);
    gt_real.closefrom(first);
}

GT_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_ioctl, GT_FILE);
    return gt_real.ioctl(fd, request, arg);
}

/* These return when the child has called exec, or has failed to. */

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
 * Reading a whole directory. The program's own filter and order are code of its own, whose waits
 * this call would hide. So with these the call is not recorded, and its waits for the disk are not
 * seen.
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
