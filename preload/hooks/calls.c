/* The hooks of calls.def, and the calls whose parameters a row cannot express. */
#include "slice.h"
#include "fds.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#define GT_CALL(what, result, name, parameters, arguments)         \
    GT_EXPORT result name parameters                               \
    {                                                              \
        GT_SLICE(gt_slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return gt_real.name arguments;                             \
    }
#include "calls.def"
#undef GT_CALL

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

/* The results of these are new descriptors too. */
#define NEW_FD(what, name, parameters, arguments)               \
    GT_EXPORT int name parameters                               \
    {                                                           \
        GT_SLICE(slice) = gt_slice_begin(GT_HOOK_##name, what); \
        return gt_fd_forget(gt_real.name arguments);            \
    }

NEW_FD(GT_FILE, __open_2, (const char *path, int flags), (path, flags))
NEW_FD(GT_FILE, __open64_2, (const char *path, int flags), (path, flags))
NEW_FD(GT_FILE, __openat_2, (int dir, const char *path, int flags), (dir, path, flags))
NEW_FD(GT_FILE, __openat64_2, (int dir, const char *path, int flags), (dir, path, flags))
NEW_FD(GT_FILE, openat2, (int dir, const char *path, const struct open_how *how, size_t n),
       (dir, path, how, n))
NEW_FD(GT_FILE, creat, (const char *path, mode_t mode), (path, mode))
NEW_FD(GT_FILE, creat64, (const char *path, mode_t mode), (path, mode))
NEW_FD(GT_NETWORK, accept, (int fd, struct sockaddr *from, socklen_t *n), (fd, from, n))
NEW_FD(GT_NETWORK, accept4, (int fd, struct sockaddr *from, socklen_t *n, int flags),
       (fd, from, n, flags))

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
