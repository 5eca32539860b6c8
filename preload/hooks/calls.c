/* The hooks of calls.def, and the calls whose parameters a row cannot express. */
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

/* How long a sleep that is over was to be. What libc and the kernel have read can be read. */

static void slept_sleep(struct gt_wait *wait, unsigned seconds)
{
    gt_wait_took(wait, seconds * 1000000000ull);
}

static void slept_usleep(struct gt_wait *wait, useconds_t us)
{
    gt_wait_took(wait, us * 1000ull);
}

static void slept_nanosleep(struct gt_wait *wait, const struct timespec *time,
                            const struct timespec *left)
{
    (void)left;
    gt_wait_took(wait, gt_ns_of(time));
}

static void slept_thrd_sleep(struct gt_wait *wait, const struct timespec *time,
                             const struct timespec *left)
{
    slept_nanosleep(wait, time, left);
}

static void slept_clock_nanosleep(struct gt_wait *wait, clockid_t clock, int flags,
                                  const struct timespec *time, const struct timespec *left)
{
    if (flags & TIMER_ABSTIME)
        gt_wait_expired(wait, clock, time);
    else
        slept_nanosleep(wait, time, left);
}

/* How long a poll waits, 0: not, or until it is woken. */

static uint64_t ns_of_ms(int ms)
{
    return ms > 0 ? (uint64_t)ms * 1000000 : 0;
}

static uint64_t ns_of_time(const struct timespec *time)
{
    return time ? gt_ns_of(time) : 0;
}

#define PATIENCE(timeout) \
    _Generic((timeout), int : ns_of_ms, const struct timespec * : ns_of_time)(timeout)

#define GT_CALL(what, result, name, parameters, arguments)         \
    GT_EXPORT result name parameters                               \
    {                                                              \
        GT_SLICE(gt_slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return gt_real.name arguments;                             \
    }
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
#define NEW_PAIR(result, name, parameters, arguments)    \
    GT_EXPORT result name parameters                     \
    {                                                    \
        return forget_pair(gt_real.name arguments, fds); \
    }
#define WORDS(...) __VA_ARGS__
#define SLEEP(result, name, parameters, arguments)                            \
    GT_EXPORT result name parameters                                          \
    {                                                                         \
        GT_WAIT(wait) = gt_wait_begin(GT_HOOK_##name, GT_REASON_SLEEP, NULL); \
        result r = gt_real.name arguments;                                    \
        if (r == 0)                                                           \
            slept_##name(&wait, WORDS arguments);                             \
        return r;                                                             \
    }
#define POLL(result, name, parameters, arguments)                     \
    GT_EXPORT result name parameters                                  \
    {                                                                 \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, GT_NETWORK); \
        result r = gt_real.name arguments;                            \
        if (r == 0)                                                   \
            gt_slice_expired(&slice, PATIENCE(timeout));              \
        return r;                                                     \
    }
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
        return gt_fd_forget(real(fd, command, arg));
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
