/*
 * An arena: memory that only grows, until all of it is freed at once. Its chunks come from mmap,
 * never from malloc. It has no lock: any thread may call gt_arena_alloc in any context, and may
 * leave the call in the middle. Memory is zeroed and 16-byte aligned; NULL: there is none.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct gt_arena {
    _Atomic(struct gt_chunk *) chunk; /* the newest one */
    size_t chunk_bytes; /* of the first chunk; each further one is twice as large, up to 1 MiB.
                           0: all chunks have 256 KiB. In the black box all have 64 KiB. */
    size_t align;       /* of allocations whose sizes are multiples of it; 0: 16 */
    bool boxed;         /* its chunks are memory of the black box, if there is one */
};

void *gt_arena_alloc(struct gt_arena *arena, size_t size);

/* Allocates a copy of `size` bytes. NULL: there is no memory, or `from` is NULL. */
void *gt_arena_copy(struct gt_arena *arena, const void *from, size_t size);

/* Allocates a copy of a string. "?": there is no memory. */
const char *gt_arena_text(struct gt_arena *arena, const char *text);

/* The sizes of all chunks together. */
size_t gt_arena_bytes(const struct gt_arena *arena);

/* Frees all chunks. No thread may use the memory any more. */
void gt_arena_free(struct gt_arena *arena);

/* For gt_box_leave: copies the chunks that are in the black box at `base` to `copy`. */
void gt_arena_keep(const struct gt_arena *arena, char *copy, const char *base);

/* Zeroed anonymous pages, or NULL. gt_pages_free accepts NULL. */
void *gt_pages_alloc(size_t size);
void gt_pages_free(void *p, size_t size);

/*
 * Pages that grow by doubling. A fork may come at any moment: the old pages are freed only after
 * the vector has left them. false: there is no memory, and nothing has changed.
 */
struct gt_vector {
    void *at;
    size_t bytes;
};
bool gt_vector_reserve(struct gt_vector *v, size_t bytes);
void gt_vector_empty(struct gt_vector *v);

/*
 * Doubles the room of `items`, pages for *capacity items, or allocates the first. Does nothing
 * while n < *capacity. NULL: there is no memory, and nothing has changed.
 */
void *gt_pages_grow(void *items, size_t n, size_t *capacity, size_t item_bytes);
