/*
 * A file that a program goes on writing: what is new in it is read from time to time, in order, and
 * checked before: it is a regular one, has no other name, and belongs to the right user or to root.
 * No descriptor stays open in between.
 */
#ifndef GT_GROWING_H
#define GT_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gt_growing {
    uint64_t at; /* read up to there */
    dev_t dev;
    ino_t ino;
    char before[32]; /* what stood before that */
    /* While it is open: */
    int fd;
    uint64_t size, limit; /* limit: what is behind it is left for the next time */
    char *buffer;
    uint64_t from; /* of the buffer */
    size_t have;
};

enum {
    GT_GROWING_BUFFER = 64 << 10,
    GT_GROWING_LIMIT = 64 << 20, /* bytes that are read at a time */
};

enum gt_growing_file {
    GT_GROWING_NONE,   /* there is none that may be read */
    GT_GROWING_FIRST,  /* there was none before */
    GT_GROWING_ANEW,   /* in the place of that from before: it is read from its beginning */
    GT_GROWING_LONGER, /* from where it was left on */
};

enum gt_growing_file gt_growing_open(struct gt_growing *g, const char *path, uid_t owner);

/* What stands at g->at: *n bytes, `most` or as many as there are. NULL: it cannot be read. */
const char *gt_growing_peek(struct gt_growing *g, size_t most, size_t *n);

/* false: there is more than is read at a time. */
bool gt_growing_close(struct gt_growing *g);

#endif
