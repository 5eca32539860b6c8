/* See nursery.h. Each block is preceded by its size. */
#include "nursery.h"

#include "encoder/base/sparse.h"

#include <string.h>

struct gt_nursery gt_nursery GT_SPARSE_LARGE;
__thread bool gt_nursery_only;

void *gt_nursery_alloc(size_t size)
{
    size_t need = 16 + ((size + 15) & ~(size_t)15);
    if (size > GT_NURSERY_BYTES || atomic_load(&gt_nursery.used) + need > GT_NURSERY_BYTES)
        return NULL;
    size_t at = atomic_fetch_add(&gt_nursery.used, need);
    if (at + need > GT_NURSERY_BYTES)
        return NULL;
    size_t *p = (size_t *)(gt_nursery.bytes + at + 16);
    p[-2] = size;
    return p;
}

void gt_nursery_close(void)
{
    atomic_store(&gt_nursery.used, GT_NURSERY_BYTES);
}

void *gt_nursery_calloc(size_t n, size_t size)
{
    return size && n > SIZE_MAX / size ? NULL : gt_nursery_alloc(n * size);
}

void *gt_nursery_realloc(void *p, size_t size)
{
    void *fresh = gt_nursery_alloc(size);
    if (p && fresh)
        memcpy(fresh, p, size < gt_nursery_size(p) ? size : gt_nursery_size(p));
    return fresh;
}

void gt_nursery_free(void *p)
{
    (void)p;
}
