/* A heap of pairs by key: at[0] has the least. The caller has the memory. */
#ifndef GT_HEAP_H
#define GT_HEAP_H

#include "sort.h"

struct gt_heap {
    struct gt_pair *at;
    size_t n;
};

static inline void gt_heap_push(struct gt_heap *h, struct gt_pair item)
{
    size_t i = h->n++;
    for (; i && item.key < h->at[(i - 1) / 2].key; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = item;
}

/* Puts the item in the place of the first. */
static inline void gt_heap_replace(struct gt_heap *h, struct gt_pair item)
{
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->at[child + 1].key < h->at[child].key)
            child++;
        if (item.key <= h->at[child].key)
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = item;
}

/* The value of the first, which is taken out. */
static inline uint64_t gt_heap_pop(struct gt_heap *h)
{
    uint64_t value = h->at[0].value;
    h->n--;
    gt_heap_replace(h, h->at[h->n]);
    return value;
}

#endif
