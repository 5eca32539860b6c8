/* See arena.h. */
#include "arena.h"

#include <sys/mman.h>

#define CHUNK (256u << 10)

void *gt_pages_alloc(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void gt_pages_free(void *p, size_t size)
{
    munmap(p, size);
}

static void *alloc_locked(struct gt_arena *arena, size_t size)
{
    if ((size_t)(arena->end - arena->pos) < size) {
        size_t chunk = size > CHUNK ? size : CHUNK;
        char *fresh = gt_pages_alloc(chunk);
        if (!fresh)
            return NULL;
        arena->mapped += chunk;
        arena->pos = fresh;
        arena->end = fresh + chunk;
    }
    void *p = arena->pos;
    arena->pos += size;
    return p;
}

void *gt_arena_alloc(struct gt_arena *arena, size_t size)
{
    int saved = errno;
    size = (size + 15) & ~(size_t)15;
    if (!gt_lock_within(&arena->lock, GT_LOCK_PATIENCE_NS))
        return NULL;
    void *p = alloc_locked(arena, size);
    gt_unlock(&arena->lock);
    errno = saved;
    return p;
}
