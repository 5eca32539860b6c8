/* See fds.h. */
#include "fds.h"

#include "channels.h"

#include "encoder/base/sparse.h"
#include "preload/bind/real.h"
#include "preload/process/process_state.h"

#include <sys/stat.h>

_Atomic uint8_t gt_fd_kind[GT_FDS] GT_SPARSE;

enum gt_fd_kind gt_fd_find(int fd)
{
    struct stat st;
    enum gt_fd_kind kind = gt_fd_known(fd);
    if (kind != GT_FD_UNKNOWN && kind != GT_FD_NEW)
        return kind;
    GT_KEEP_ERRNO;
    bool there = gt_fstat(fd, &st) == 0;
    kind = there && S_ISSOCK(st.st_mode) ? GT_FD_SOCKET : GT_FD_OTHER;
    if (fd >= GT_FDS || !gt_process_is_ours()) /* a child of vfork has descriptors of its own */
        return kind;
    if (there && gt_channels_wanted() && gt_channel_find(fd, &st))
        kind = GT_FD_NAMED;
    gt_fd_set(fd, kind);
    return kind;
}
