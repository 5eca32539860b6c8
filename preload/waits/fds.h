/*
 * Kinds of file descriptors: sockets, and, where every call is recorded, other streams with a name
 * (channels.h). The first call that asks finds out the kind. A byte for each descriptor keeps it
 * until the number may come to mean something else. Any context.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define GT_FDS 65536 /* higher numbers: kinds are not kept, and there are no names */

/*
 * Kinds with the lowest bit set need no second look. GT_FD_NAMED: a stream whose other end other
 * threads or processes may have. GT_FD_NEW: not known, but this process has made it. GT_FD_LOCKED,
 * GT_FD_LOCKED_NEW and GT_FD_COMM: neither socket nor stream; see file_locks.h and thread_names.h.
 */
enum gt_fd_kind {
    GT_FD_UNKNOWN,
    GT_FD_OTHER,
    GT_FD_NAMED,
    GT_FD_SOCKET,
    GT_FD_NEW,
    GT_FD_COMM,
    GT_FD_LOCKED = 7,
    GT_FD_LOCKED_NEW = 9
};
extern _Atomic uint8_t gt_fd_kind[GT_FDS];

/* The kind of fd if it is known already, else GT_FD_UNKNOWN or GT_FD_NEW. fd >= 0, as in all
 * functions here. */
static inline enum gt_fd_kind gt_fd_known(int fd)
{
    return fd < GT_FDS ? atomic_load_explicit(&gt_fd_kind[fd], memory_order_relaxed)
                       : GT_FD_UNKNOWN;
}

/* The kind of fd, looked up unless it is known: never GT_FD_UNKNOWN or GT_FD_NEW. errno is kept. */
enum gt_fd_kind gt_fd_find(int fd);

static inline void gt_fd_set(int fd, enum gt_fd_kind kind)
{
    if (fd < GT_FDS)
        atomic_store_explicit(&gt_fd_kind[fd], (uint8_t)kind, memory_order_relaxed);
}

/*
 * fd has a new meaning, or none any more. A negative fd, the result of a failed call, is ignored.
 * Returns fd.
 */
static inline int gt_fd_forget(int fd)
{
    if (fd >= 0)
        gt_fd_set(fd, GT_FD_NEW);
    return fd;
}
