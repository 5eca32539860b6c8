/* See pool.h. */
#include "pool.h"

#include "encoder/base/arena.h"

#include <string.h>

#define CHUNK (64u << 10)

struct gt_pool_chunk {
    struct gt_pool_chunk *next;
    size_t size;
};

void *gt_pool_alloc(struct gt_pool *pool, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(pool->end - pool->pos) < size) {
        size_t bytes = size + sizeof(struct gt_pool_chunk);
        bytes = bytes < CHUNK ? CHUNK : (bytes + CHUNK - 1) & ~(size_t)(CHUNK - 1);
        struct gt_pool_chunk *chunk = gt_pages_alloc(bytes);
        if (!chunk)
            return NULL;
        *chunk = (struct gt_pool_chunk){pool->chunks, bytes};
        pool->chunks = chunk;
        pool->pos = (char *)(chunk + 1);
        pool->end = (char *)chunk + bytes;
    }
    void *p = pool->pos;
    pool->pos += size;
    return p;
}

const char *gt_pool_text(struct gt_pool *pool, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = gt_pool_alloc(pool, size);
    return copy ? memcpy(copy, text, size) : "?";
}

void gt_pool_free(struct gt_pool *pool)
{
    while (pool->chunks) {
        struct gt_pool_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        gt_pages_free(chunk, chunk->size);
    }
    *pool = (struct gt_pool){0};
}
