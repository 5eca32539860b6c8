/* A priority queue of pairs, as a heap: at[0] has the least key. The caller provides the memory. */
#pragma once

#include "sort.h"

struct gt_queue {
    struct gt_pair *at;
    size_t n;
};

/* Replaces item i by one that may have another key, which goes to its place. */
static inline void gt_queue_replace(struct gt_queue *q, size_t i, struct gt_pair item)
{
    for (; i && item.key < q->at[(i - 1) / 2].key; i = (i - 1) / 2)
        q->at[i] = q->at[(i - 1) / 2];
    for (size_t child; (child = 2 * i + 1) < q->n; i = child) {
        if (child + 1 < q->n && q->at[child + 1].key < q->at[child].key)
            child++;
        if (item.key <= q->at[child].key)
            break;
        q->at[i] = q->at[child];
    }
    q->at[i] = item;
}

static inline void gt_queue_push(struct gt_queue *q, struct gt_pair item)
{
    q->n++;
    gt_queue_replace(q, q->n - 1, item);
}

/* Removes the first item and returns its value. */
static inline uint64_t gt_queue_pop(struct gt_queue *q)
{
    uint64_t value = q->at[0].value;
    q->n--;
    gt_queue_replace(q, 0, q->at[q->n]);
    return value;
}

/* Removes item i: moves it to the top, and pops it. */
static inline void gt_queue_remove(struct gt_queue *q, size_t i)
{
    for (; i; i = (i - 1) / 2)
        q->at[i] = q->at[(i - 1) / 2];
    gt_queue_pop(q);
}
