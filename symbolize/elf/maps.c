/* See maps.h. */
#include "maps.h"

#include "encoder/base/arena.h"
#include "encoder/base/file.h"

#include <stdint.h>
#include <string.h>

/* Calls fn with the complete lines in n bytes. Returns their length; SIZE_MAX: fn returned true. */
static size_t look_at(const char *text, size_t n, gt_maps_fn *fn, void *arg)
{
    const char *line = text, *end;
    while ((end = memchr(line, '\n', n - (size_t)(line - text)))) {
        if (fn(arg, line, end))
            return SIZE_MAX;
        line = end + 1;
    }
    return (size_t)(line - text);
}

static bool look_in(int fd, char *chunk, size_t room, gt_maps_fn *fn, void *arg)
{
    off_t from = 0;
    for (ssize_t n; (n = gt_file_read(fd, chunk, room, from)) > 0;) {
        size_t seen = look_at(chunk, (size_t)n, fn, arg);
        if (seen == SIZE_MAX)
            return true;
        if (seen == 0)
            return false;
        from += (off_t)seen;
    }
    return false;
}

bool gt_maps_look(const char *path, gt_maps_fn *fn, void *arg)
{
    enum { ROOM = 32 << 10 };
    char *chunk = gt_pages_alloc(ROOM);
    int fd = chunk ? gt_file_open(path, 0) : -1;
    bool found = fd >= 0 && look_in(fd, chunk, ROOM, fn, arg);
    if (fd >= 0)
        gt_file_close(fd);
    gt_pages_free(chunk, ROOM);
    return found;
}
