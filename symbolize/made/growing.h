/*
 * A file that a program goes on writing. From time to time we read the new part, in order. The file
 * must be a regular one, have no other name, and belong to the right user or to root. No descriptor
 * stays open in between.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gt_growing {
    uint64_t at; /* the file has been read up to this offset */
    dev_t dev;
    ino_t ino;
    char before[32]; /* the bytes before that offset */
    /* While the file is open: */
    int fd;
    uint64_t size, limit; /* limit: the part behind it is left for the next time */
    char *buffer;
    uint64_t from; /* offset of the buffer in the file */
    size_t have;
};

enum {
    GT_GROWING_BUFFER = 64 << 10,
    GT_GROWING_LIMIT = 64 << 20, /* maximal bytes between open and close */
};

enum gt_growing_file {
    GT_GROWING_NONE,   /* there is no file that may be read */
    GT_GROWING_FIRST,  /* there was no file before */
    GT_GROWING_ANEW,   /* another file has its place: reading starts at the beginning */
    GT_GROWING_LONGER, /* reading goes on where it ended */
};

enum gt_growing_file gt_growing_open(struct gt_growing *g, const char *path, uid_t owner);

/* The bytes at g->at: *n of them, `most` or as many as there are. NULL: the file cannot be read. */
const char *gt_growing_peek(struct gt_growing *g, size_t most, size_t *n);

/* Closes the file. false: it contains more than GT_GROWING_LIMIT bytes that were not read yet. */
bool gt_growing_close(struct gt_growing *g);
