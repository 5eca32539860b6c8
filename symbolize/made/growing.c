/* See growing.h. */
#include "growing.h"

#include "encoder/base/arena.h"
#include "encoder/base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads `size` bytes, or up to the end of the file, where errno is 0. */
static size_t read_up_to(int fd, char *to, size_t size, uint64_t from)
{
    size_t n = 0;
    errno = 0;
    while (n < size) {
        ssize_t got = gt_file_read(fd, to + n, size - n, (off_t)(from + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

static bool may_be_read(const struct stat *st, uid_t owner)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && (st->st_uid == owner || st->st_uid == 0);
}

/* Whether the file only grew: programs may also replace or rewrite it. */
static bool goes_on(const struct gt_growing *g, const struct stat *st)
{
    char now[sizeof g->before];
    size_t n = g->at < sizeof now ? (size_t)g->at : sizeof now;
    return st->st_dev == g->dev && st->st_ino == g->ino && (uint64_t)st->st_size >= g->at &&
           read_up_to(g->fd, now, n, g->at - n) == n && memcmp(now, g->before, n) == 0;
}

enum gt_growing_file gt_growing_open(struct gt_growing *g, const char *path, uid_t owner)
{
    struct stat st;
    g->fd = gt_file_open(path, O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    if (g->fd < 0)
        return GT_GROWING_NONE;
    g->buffer = NULL;
    bool good = gt_fstat(g->fd, &st) == 0 && may_be_read(&st, owner);
    if (good)
        g->buffer = gt_pages_alloc(GT_GROWING_BUFFER);
    if (!g->buffer) {
        gt_file_close(g->fd);
        return GT_GROWING_NONE;
    }
    enum gt_growing_file found = !g->ino           ? GT_GROWING_FIRST
                                 : goes_on(g, &st) ? GT_GROWING_LONGER
                                                   : GT_GROWING_ANEW;
    if (found != GT_GROWING_LONGER)
        g->at = 0;
    g->dev = st.st_dev;
    g->ino = st.st_ino;
    g->size = (uint64_t)st.st_size;
    g->limit = g->at + GT_GROWING_LIMIT;
    g->from = g->at;
    g->have = 0;
    return found;
}

const char *gt_growing_peek(struct gt_growing *g, size_t most, size_t *n)
{
    uint64_t end = g->size < g->limit ? g->size : g->limit;
    uint64_t left = g->at < end ? end - g->at : 0;
    size_t wanted = most < GT_GROWING_BUFFER ? most : GT_GROWING_BUFFER;
    wanted = wanted < left ? wanted : (size_t)left;
    if (g->at < g->from || g->at + wanted > g->from + g->have) {
        g->from = g->at;
        g->have = read_up_to(g->fd, g->buffer, GT_GROWING_BUFFER, g->at);
    }
    size_t there = (size_t)(g->from + g->have - g->at);
    *n = there < wanted ? there : wanted;
    return *n ? g->buffer + (g->at - g->from) : NULL;
}

bool gt_growing_close(struct gt_growing *g)
{
    size_t n = g->at < sizeof g->before ? (size_t)g->at : sizeof g->before;
    if (read_up_to(g->fd, g->before, n, g->at - n) != n)
        g->ino = 0; /* the next open starts at the file's beginning */
    gt_pages_free(g->buffer, GT_GROWING_BUFFER);
    gt_file_close(g->fd);
    return g->size <= g->limit;
}
