/* A table from 64-bit keys to non-zero 64-bit values that only grows. One thread at a time. */
#pragma once

#include "sort.h"

struct gt_memo {
    struct gt_pair *slots; /* value 0: free */
    size_t used, capacity; /* a power of two */
};

/* Finds the key's slot, or the free slot where it would go. The table must have a free slot. */
static inline struct gt_pair *gt_memo_probe(struct gt_pair *slots, size_t capacity, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(hash ^ hash >> 32); /* the hash's low half ignores the key's high half */
    while (slots[i & (capacity - 1)].value && slots[i & (capacity - 1)].key != key)
        i++;
    return &slots[i & (capacity - 1)];
}

/* Slow half of gt_memo_at: adds a key that has no value. */
uint64_t *gt_memo_add(struct gt_memo *memo, uint64_t key);

/* The key's value, or 0. */
static inline uint64_t gt_memo_find(const struct gt_memo *memo, uint64_t key)
{
    return memo->capacity ? gt_memo_probe(memo->slots, memo->capacity, key)->value : 0;
}

/*
 * Where the key's value is, or is to be stored. For a new key it points at 0, and the key counts as
 * added only once the caller has stored another value. Valid until the next call. NULL: no memory.
 */
static inline uint64_t *gt_memo_at(struct gt_memo *memo, uint64_t key)
{
    struct gt_pair *slot = memo->capacity ? gt_memo_probe(memo->slots, memo->capacity, key) : NULL;
    return slot && slot->value ? &slot->value : gt_memo_add(memo, key);
}

void gt_memo_free(struct gt_memo *memo);
