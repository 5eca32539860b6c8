/* See arena.h. */
#include "arena.h"

#include "box.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK (256u << 10)
#define CHUNK_MOST (1u << 20) /* where chunks grow: less than a huge page */
#define BOX_CHUNK (64u << 10) /* the box takes space for all pages of a chunk at once */

/* Fills a cache line. */
struct gt_chunk {
    _Alignas(64) _Atomic size_t used; /* above `size` once an allocation did not fit */
    size_t size;
    struct gt_chunk *before;
};

void *gt_pages_alloc(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void gt_pages_free(void *p, size_t size)
{
    if (gt_box_has(p))
        gt_box_free(p, size);
    else if (p)
        munmap(p, size);
}

void *gt_pages_grow(void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    enum { FIRST = 64 << 10 };
    if (n < *capacity)
        return items;
    size_t bytes = *capacity * item_bytes, more = bytes ? 2 * bytes : FIRST - FIRST % item_bytes;
    void *p = items ? mremap(items, bytes, more, MREMAP_MAYMOVE) : gt_pages_alloc(more);
    if (!p || p == MAP_FAILED)
        return NULL;
    *capacity = more / item_bytes;
    return p;
}

bool gt_vector_reserve(struct gt_vector *v, size_t bytes)
{
    if (bytes <= v->bytes)
        return true;
    if (bytes > SIZE_MAX / 2)
        return false; /* sizes may come from a file; no power of two is that large */
    struct gt_vector old = *v;
    size_t more = old.bytes ? old.bytes : 64u << 10;
    while (more < bytes)
        more *= 2;
    void *fresh = gt_pages_alloc(more);
    if (!fresh)
        return false;
    if (old.at)
        memcpy(fresh, old.at, old.bytes);
    v->at = fresh;
    v->bytes = more;
    gt_pages_free(old.at, old.bytes);
    return true;
}

void gt_vector_empty(struct gt_vector *v)
{
    struct gt_vector old = *v;
    v->bytes = 0;
    v->at = NULL;
    gt_pages_free(old.at, old.bytes);
}

/*
 * How large the chunk after `full` is, at least. Chunks that suffice for a few threads must grow:
 * else thousands of new threads would find one full at once, map one each, and queue for the
 * kernel's lock of the mappings.
 */
static size_t next_chunk(const struct gt_arena *arena, const struct gt_chunk *full, bool boxed)
{
    if (boxed || !arena->chunk_bytes)
        return boxed ? BOX_CHUNK : CHUNK;
    size_t twice = full ? 2 * full->size : 0, grown = twice < CHUNK_MOST ? twice : CHUNK_MOST;
    return grown > arena->chunk_bytes ? grown : arena->chunk_bytes;
}

/* Puts a new chunk in place of `full`, unless another thread was faster. false: no memory. */
static bool add_chunk(struct gt_arena *arena, struct gt_chunk *full, size_t size)
{
    size_t head = arena->align > sizeof *full ? arena->align : sizeof *full;
    bool boxed = arena->boxed && gt_box_is_open();
    size_t bytes = next_chunk(arena, full, boxed), needed = head + size;
    bytes = needed > bytes ? needed : bytes;
    struct gt_chunk *fresh = boxed ? gt_box_alloc_table(bytes) : gt_pages_alloc(bytes);
    if (!fresh && !boxed)
        fresh = gt_pages_alloc(bytes = needed);
    if (!fresh)
        return false;
    fresh->used = head;
    fresh->size = bytes;
    fresh->before = full;
    /* release: pairs with the acquire in gt_arena_alloc */
    if (!atomic_compare_exchange_strong_explicit(&arena->chunk, &full, fresh, memory_order_release,
                                                 memory_order_relaxed))
        gt_pages_free(fresh, bytes);
    return true;
}

void *gt_arena_alloc(struct gt_arena *arena, size_t size)
{
    int saved = errno;
    size = (size + 15) & ~(size_t)15;
    for (;;) {
        struct gt_chunk *c = atomic_load_explicit(&arena->chunk, memory_order_acquire);
        size_t at = c ? atomic_fetch_add_explicit(&c->used, size, memory_order_relaxed) : 0;
        if (c && at + size <= c->size)
            return (char *)c + at;
        bool added = add_chunk(arena, c, size);
        errno = saved;
        if (!added)
            return NULL;
    }
}

void *gt_arena_copy(struct gt_arena *arena, const void *from, size_t size)
{
    void *copy = from ? gt_arena_alloc(arena, size) : NULL;
    return copy ? memcpy(copy, from, size) : NULL;
}

const char *gt_arena_text(struct gt_arena *arena, const char *text)
{
    const char *copy = gt_arena_copy(arena, text, strlen(text) + 1);
    return copy ? copy : "?";
}

size_t gt_arena_bytes(const struct gt_arena *arena)
{
    size_t bytes = 0;
    for (const struct gt_chunk *c = atomic_load(&arena->chunk); c; c = c->before)
        bytes += c->size;
    return bytes;
}

void gt_arena_free(struct gt_arena *arena)
{
    struct gt_chunk *c = atomic_exchange(&arena->chunk, NULL);
    while (c) {
        struct gt_chunk *before = c->before;
        gt_pages_free(c, c->size);
        c = before;
    }
}

void gt_arena_keep(const struct gt_arena *arena, char *copy, const char *base)
{
    const struct gt_chunk *c = atomic_load(&arena->chunk);
    for (; c; c = c->before) {
        if (gt_box_has(c))
            memcpy(copy + ((const char *)c - base), c, c->used < c->size ? c->used : c->size);
    }
}
