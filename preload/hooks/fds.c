/* See fds.h; and the calls that change what a descriptor is. */
#include "fds.h"

#include "slice.h"

#include "encoder/base/futex.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

_Atomic uint8_t gt_fd_kind[GT_FDS];

bool gt_fd_is_socket_slow(int fd)
{
    struct stat st;
    int saved = errno;
    bool socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    errno = saved;
    if (fd < GT_FDS)
        atomic_store_explicit(&gt_fd_kind[fd], socket ? GT_FD_SOCKET : GT_FD_OTHER,
                              memory_order_relaxed);
    return socket;
}

static void forget_from(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < GT_FDS; fd++)
        if (gt_fd_kind[fd])
            gt_fd_forget((int)fd);
}

/* Two new descriptors, when the call that made them has returned 0. */
static int forget_pair(int result, const int fds[2])
{
    if (result == 0)
        gt_fd_forget(fds[0]), gt_fd_forget(fds[1]);
    return result;
}

/* Forgotten before: afterwards the number may be in use again. */
GT_EXPORT int close(int fd)
{
    GT_SLICE(slice) = gt_slice_begin(GT_HOOK_close, GT_FILE);
    return gt_real.close(gt_fd_forget(fd));
}

GT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    forget_from(first, last);
    return gt_real.close_range(first, last, flags);
}

GT_EXPORT void closefrom(int first)
{
    forget_from(first < 0 ? 0 : (unsigned)first, GT_FDS);
    gt_real.closefrom(first);
}

#define NEW(name, parameters, arguments)             \
    GT_EXPORT int name parameters                    \
    {                                                \
        return gt_fd_forget(gt_real.name arguments); \
    }
#define NEW_PAIR(name, parameters, arguments)            \
    GT_EXPORT int name parameters                        \
    {                                                    \
        return forget_pair(gt_real.name arguments, fds); \
    }

NEW(dup, (int fd), (fd))
NEW(dup2, (int fd, int as), (fd, as))
NEW(dup3, (int fd, int as, int flags), (fd, as, flags))
NEW(socket, (int domain, int type, int protocol), (domain, type, protocol))
NEW_PAIR(socketpair, (int domain, int type, int protocol, int fds[2]),
         (domain, type, protocol, fds))
NEW_PAIR(pipe, (int fds[2]), (fds))
NEW_PAIR(pipe2, (int fds[2], int flags), (fds, flags))
