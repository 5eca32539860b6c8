/* A table from 64-bit keys to non-zero 64-bit values that only grows. One thread at a time. */
#ifndef GT_MEMO_H
#define GT_MEMO_H

#include "sort.h"

struct gt_memo {
    struct gt_pair *slots; /* value 0: free */
    size_t used, capacity; /* a power of two */
};

/* Where the key is, or would be. There are slots, and a free one among them. */
static inline struct gt_pair *gt_memo_probe(struct gt_pair *slots, size_t capacity, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(hash ^ hash >> 32); /* its low half knows nothing of the key's high one */
    while (slots[i & (capacity - 1)].value && slots[i & (capacity - 1)].key != key)
        i++;
    return &slots[i & (capacity - 1)];
}

/* For gt_memo_at: of a key that has no value. */
uint64_t *gt_memo_add(struct gt_memo *memo, uint64_t key);

/* The key's value, or 0. */
static inline uint64_t gt_memo_find(const struct gt_memo *memo, uint64_t key)
{
    return memo->capacity ? gt_memo_probe(memo->slots, memo->capacity, key)->value : 0;
}

/*
 * Where the key's value is or is to be put: new ones point at 0 and count as added only once the
 * caller has written something else there. Valid until the next call. NULL: no memory.
 */
static inline uint64_t *gt_memo_at(struct gt_memo *memo, uint64_t key)
{
    struct gt_pair *slot = memo->capacity ? gt_memo_probe(memo->slots, memo->capacity, key) : NULL;
    return slot && slot->value ? &slot->value : gt_memo_add(memo, key);
}

void gt_memo_free(struct gt_memo *memo);

#endif
