/*
 * Lists that are too long for memory: records of one size, appended to any of many lists, and read
 * back list by list. What is not of the last moment lies in a temporary file without a name.
 */
#ifndef GT_SPOOL_H
#define GT_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gt_spool {
    size_t record; /* bytes of one */
    FILE *file;    /* NULL: nothing was too long yet */
    uint64_t blocks;
};

/* Zeros to begin with. */
struct gt_spool_list {
    uint64_t n;
    uint64_t *block; /* where the whole ones are in the file, in order */
    size_t blocks, blocks_room;
    uint8_t *last; /* the records behind them */
    size_t last_n, last_room;
};

/* Each ends the program with a message where there is no room. */
void gt_spool_add(struct gt_spool *spool, struct gt_spool_list *list, const void *record);

/* Calls fn with each record of the list, in order. */
typedef void gt_spool_fn(void *arg, const void *record);
void gt_spool_each(struct gt_spool *spool, const struct gt_spool_list *list, gt_spool_fn *fn,
                   void *arg);

#endif
