/*
 * Memory that is only ever added to, until all of it is given back: chunks from mmap, never from
 * malloc. Without a lock: gt_arena_alloc may be called by any thread in any context, and be left in
 * the middle. Zeroed, 16-byte aligned, NULL when the system has none left.
 */
#ifndef GT_ARENA_H
#define GT_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct gt_arena {
    _Atomic(struct gt_chunk *) chunk; /* the last one */
    size_t chunk_bytes;               /* how much is mapped at once; 0: 256 KiB */
    size_t align;                     /* of what has a multiple of that as its size; 0: 16 */
    bool boxed;                       /* it is memory of the black box, where there is one */
};

void *gt_arena_alloc(struct gt_arena *arena, size_t size);

/* A copy; NULL: there is no memory, or from is NULL. */
void *gt_arena_copy(struct gt_arena *arena, const void *from, size_t size);

/* A copy, or "?". */
const char *gt_arena_text(struct gt_arena *arena, const char *text);

/* Gives back all of it; nobody else uses it any more. */
void gt_arena_free(struct gt_arena *arena);

/* For gt_box_leave: what of it is in the black box. */
void gt_arena_keep(const struct gt_arena *arena, char *copy, const char *base);

/* Anonymous zeroed pages, or NULL, which gt_pages_free takes, too. */
void *gt_pages_alloc(size_t size);
void gt_pages_free(void *p, size_t size);

/*
 * Pages that grow by doubling, as a fork may find them: what was there is given back when all else
 * is done. false: there is no memory, and nothing has changed.
 */
struct gt_vector {
    void *at;
    size_t bytes;
};
bool gt_vector_reserve(struct gt_vector *v, size_t bytes);
void gt_vector_empty(struct gt_vector *v);

/*
 * Makes room for twice as many items in pages that have *capacity, or for the first. NULL: there is
 * no memory, and nothing has changed. Does nothing when n items leave room for another.
 */
void *gt_pages_grow(void *items, size_t n, size_t *capacity, size_t item_bytes);

#endif
