/*
 * Names that threads get: by pthread_setname_np and prctl, or by a write to a file of the kernel's,
 * /proc/self/task/TID/comm and its relatives. A descriptor that may be of such a file has the kind
 * GT_FD_COMM. So a write to any other descriptor costs one comparison. Any context.
 */
#pragma once

#include "encoder/thread/given.h"
#include "preload/waits/fds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Labels the calling thread's goroutine. What does not fit is cut. */
void gt_thread_names_self(const char *name);

void gt_thread_names_opened_slow(int fd, const char *path);

/* A call has opened fd, or failed (-1). to_write: fd can be written to. Returns fd. */
static inline int gt_thread_names_opened(int fd, const char *path, bool to_write)
{
    if (fd >= 0 && to_write)
        gt_thread_names_opened_slow(fd, path);
    return fd;
}

void gt_thread_names_written_slow(int fd, const char *text, size_t n);

/* A call has written n bytes of text to fd; n < 0: it has failed. Returns n. */
static inline ssize_t gt_thread_names_written(int fd, const void *text, ssize_t n)
{
    if (__builtin_expect(n > 0 && fd >= 0 && gt_fd_known(fd) == GT_FD_COMM, 0))
        gt_thread_names_written_slow(fd, text, (size_t)n);
    return n;
}

/* A name that closing a stream writes. tid 0: it writes none. */
struct gt_stream_name {
    uint32_t tid;
    char text[GT_GIVEN_NAME];
};
struct gt_stream_name gt_thread_names_in(FILE *file);

/* The stream was closed, and so the name written. */
void gt_thread_names_closed(const struct gt_stream_name *name);
