/* See fds.h; and the calls that change what a descriptor is. */
#include "fds.h"

#include "slice.h"

#include "encoder/base/futex.h"

#include <sys/stat.h>

_Atomic uint8_t gt_fd_kind[GT_FDS];

bool gt_fd_is_socket_slow(int fd)
{
    struct stat st;
    GT_KEEP_ERRNO;
    bool socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
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
