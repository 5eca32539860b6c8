/*
 * What file descriptors are: sockets, and, where every call is recorded, others that have a name
 * (channels.h). Found out at the first call that asks, kept in a byte for each descriptor,
 * forgotten when the number may come to mean something else. Any context.
 */
#ifndef GT_FDS_H
#define GT_FDS_H

#include <stdatomic.h>
#include <stdint.h>

#define GT_FDS 65536 /* beyond, it is found out each time, and nothing has a name */

/* Those with a 1 in the last bit need no second look. NAMED: others may be at its other end, too.
 */
enum gt_fd_kind { GT_FD_UNKNOWN, GT_FD_OTHER, GT_FD_NAMED, GT_FD_SOCKET };
extern _Atomic uint8_t gt_fd_kind[GT_FDS];

/* fd >= 0, as in all of these. */
static inline enum gt_fd_kind gt_fd_known(int fd)
{
    return fd < GT_FDS ? atomic_load_explicit(&gt_fd_kind[fd], memory_order_relaxed)
                       : GT_FD_UNKNOWN;
}

/* What is known, or else can be found out: never UNKNOWN. errno is kept. */
enum gt_fd_kind gt_fd_find(int fd);

static inline void gt_fd_set(int fd, enum gt_fd_kind kind)
{
    if (fd < GT_FDS)
        atomic_store_explicit(&gt_fd_kind[fd], (uint8_t)kind, memory_order_relaxed);
}

/* fd means something new, or nothing any more; a negative one is an error's. Returns fd. */
static inline int gt_fd_forget(int fd)
{
    if (fd >= 0)
        gt_fd_set(fd, GT_FD_UNKNOWN);
    return fd;
}

#endif
