/* See trace.h: files in memory. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE = 1 << 30 }; /* of a larger file only a small part may be needed */

const char *gt_trace_map(struct gt_bytes *bytes, const char *path, size_t least)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for a FIFO's writer */
    if (fd < 0)
        return strerror(errno);
    void *base = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)least)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base != MAP_FAILED) {
        *bytes = (struct gt_bytes){base, (uint8_t *)base + st.st_size, false};
        if (st.st_size < LARGE)
            madvise(base, (size_t)st.st_size, MADV_WILLNEED);
    }
    return NULL;
}

void gt_trace_forget(const struct gt_trace *trace, const uint8_t *start, const uint8_t *end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t from = (size_t)(start - trace->base) / page * page;
    size_t to = (size_t)(end - trace->base) / page * page;
    if (to > from)
        madvise((void *)(uintptr_t)(trace->base + from), to - from, MADV_DONTNEED);
}
