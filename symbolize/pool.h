/* Memory that is given back all at once. Zeroed, 16-byte aligned. One thread at a time. */
#ifndef GT_POOL_H
#define GT_POOL_H

#include <stddef.h>

struct gt_pool {
    struct gt_pool_chunk *chunks;
    char *pos, *end;
};

/* NULL when the system has none left. */
void *gt_pool_alloc(struct gt_pool *pool, size_t size);
const char *gt_pool_text(struct gt_pool *pool, const char *text); /* a copy, or "?" */
void gt_pool_free(struct gt_pool *pool);

#endif
