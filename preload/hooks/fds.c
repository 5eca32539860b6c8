/* See fds.h; and the calls that change what a descriptor is. */
#include "fds.h"

#include "channels.h"
#include "slice.h"

#include "encoder/base/futex.h"
#include "encoder/base/sparse.h"
#include "preload/process.h"

#include <sys/stat.h>

_Atomic uint8_t gt_fd_kind[GT_FDS] GT_SPARSE;

enum gt_fd_kind gt_fd_find(int fd)
{
    struct stat st;
    enum gt_fd_kind kind = gt_fd_known(fd);
    if (kind != GT_FD_UNKNOWN)
        return kind;
    GT_KEEP_ERRNO;
    bool there = gt_fstat(fd, &st) == 0;
    kind = there && S_ISSOCK(st.st_mode) ? GT_FD_SOCKET : GT_FD_OTHER;
    if (fd >= GT_FDS || !gt_process_is_ours()) /* a child of vfork's has other ones */
        return kind;
    if (there && gt_channels_wanted() && gt_channel_find(fd, &st))
        kind = GT_FD_NAMED;
    gt_fd_set(fd, kind);
    return kind;
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
