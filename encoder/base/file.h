/* Reading files past libc's functions, which are hooks of ours. Errors are in errno. */
#pragma once

#include "libc.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

static inline int gt_file_open(const char *path, int flags)
{
    return (int)gt_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags);
}

static inline ssize_t gt_file_read(int fd, void *to, size_t size, off_t from)
{
    return gt_syscall(SYS_pread64, fd, to, size, from);
}

static inline void gt_file_close(int fd)
{
    gt_syscall(SYS_close, fd);
}

/* Reads a file's first bytes as a text, "" if the file cannot be read. */
static inline void gt_file_read_text(const char *path, char *text, size_t size)
{
    int fd = gt_file_open(path, 0);
    ssize_t n = fd < 0 ? 0 : gt_file_read(fd, text, size - 1, 0);
    if (fd >= 0)
        gt_file_close(fd);
    text[n > 0 ? n : 0] = 0;
}
