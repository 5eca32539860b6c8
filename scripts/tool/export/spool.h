/*
 * Many lists of records, too long for memory. Callers append records of one size to any list, and
 * read back list by list. All but the last records of each list are in an unnamed temporary file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gt_spool {
    size_t record; /* bytes of a record */
    FILE *file;    /* NULL: no list was too long yet */
    uint64_t blocks;
};

/* Zero-initialised. */
struct gt_spool_list {
    uint64_t n;
    uint64_t *block; /* places in the file of the list's blocks, in order */
    size_t blocks;
    uint8_t *last; /* the records after those blocks */
    size_t last_n;
};

/* Both functions end the program with a message if the temporary file fails. */
void gt_spool_add(struct gt_spool *spool, struct gt_spool_list *list, const void *record);

/* Calls fn with each record of the list, in order. */
typedef void gt_spool_fn(void *arg, const void *record);
void gt_spool_each(struct gt_spool *spool, const struct gt_spool_list *list, gt_spool_fn *fn,
                   void *arg);
