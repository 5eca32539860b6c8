/* Allocation for readers and commands, neither of which can go on without memory. */
#pragma once

#include "encoder/base/memo.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Called when there is no memory. Does not return: the program says so and ends. Each program that
 * reads sets its own function first; abort(3) stands there until then.
 */
extern void (*gt_reader_no_memory)(void) __attribute__((noreturn));

/* Returns p, which malloc, calloc or realloc returned. Does not return if there was no memory. */
static inline void *gt_need(void *p)
{
    if (!p)
        gt_reader_no_memory();
    return p;
}

/*
 * Adds a zeroed item to an array that malloc returned, or that is NULL, and counts it in n. Items
 * move: pointers into the array become invalid. An array has room up to the next power of two.
 */
#define GT_ADD(array, n) ((array) = gt_need_more((array), (n), sizeof *(array)), &(array)[(n)++])

static inline void *gt_need_more(void *items, size_t n, size_t size)
{
    if (!items || (n && (n & (n - 1)) == 0))
        items = gt_need(realloc(items, (n ? 2 * n : 1) * size));
    memset((char *)items + n * size, 0, size);
    return items;
}

/* Makes room for an item with that index, and zeros the new room; *room is how many fit. */
static inline void *gt_need_zeros(void *items, size_t *room, size_t index, size_t size)
{
    if (index < *room)
        return items;
    size_t had = *room;
    *room = 2 * index + 16;
    items = gt_need(realloc(items, *room * size));
    memset((char *)items + had * size, 0, (*room - had) * size);
    return items;
}

/* Adds the key to the set. false: it was there. */
static inline bool gt_need_new(struct gt_memo *set, uint64_t key)
{
    uint64_t *seen = gt_need(gt_memo_at(set, key));
    bool is_new = !*seen;
    *seen = 1;
    return is_new;
}
