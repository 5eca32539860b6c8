/* A table from 64-bit keys to non-zero 64-bit values that only grows. One thread at a time. */
#ifndef GT_MEMO_H
#define GT_MEMO_H

#include "sort.h"

struct gt_memo {
    struct gt_pair *slots; /* value 0: free */
    size_t used, capacity; /* a power of two */
};

/*
 * Where the key's value is or is to be put: new ones point at 0 and count as added only once the
 * caller has written something else there. Valid until the next call. NULL: no memory.
 */
uint64_t *gt_memo_at(struct gt_memo *memo, uint64_t key);

/* The key's value, or 0. */
uint64_t gt_memo_find(const struct gt_memo *memo, uint64_t key);

void gt_memo_free(struct gt_memo *memo);

#endif
