/*
 * Which file descriptors are sockets. Found out at the first call that asks, kept in a byte for
 * each descriptor, forgotten when the number may come to mean something else. Any context.
 */
#ifndef GT_FDS_H
#define GT_FDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GT_FDS 65536 /* beyond, it is found out each time */

enum gt_fd_kind { GT_FD_UNKNOWN, GT_FD_OTHER, GT_FD_SOCKET };
extern _Atomic uint8_t gt_fd_kind[GT_FDS];

bool gt_fd_is_socket_slow(int fd);

/* fd >= 0 */
static inline bool gt_fd_is_socket(int fd)
{
    uint8_t kind =
        fd < GT_FDS ? atomic_load_explicit(&gt_fd_kind[fd], memory_order_relaxed) : GT_FD_UNKNOWN;
    return kind ? kind == GT_FD_SOCKET : gt_fd_is_socket_slow(fd);
}

/* fd means something new, or nothing any more; a negative one is an error's. Returns fd. */
static inline int gt_fd_forget(int fd)
{
    if (fd >= 0 && fd < GT_FDS)
        atomic_store_explicit(&gt_fd_kind[fd], GT_FD_UNKNOWN, memory_order_relaxed);
    return fd;
}

#endif
