/*
 * Memory that is only ever added to: chunks from mmap, never from malloc. gt_arena_alloc may be
 * called by several threads at once and from signal handlers guarded as in futex.h. Zeroed,
 * 16-byte aligned, NULL when the system has none left.
 */
#ifndef GT_ARENA_H
#define GT_ARENA_H

#include "futex.h"

#include <stddef.h>

struct gt_arena {
    struct gt_lock lock;
    char *pos, *end;
    size_t mapped; /* bytes taken from the system */
};

void *gt_arena_alloc(struct gt_arena *arena, size_t size);

/* Anonymous zeroed pages, or NULL. */
void *gt_pages_alloc(size_t size);
void gt_pages_free(void *p, size_t size);

#endif
