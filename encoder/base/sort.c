/*
 * See sort.h: a radix sort, one byte at a time from the lowest. Few items take an insertion sort,
 * which needs no memory.
 */
#include "sort.h"

#include "arena.h"

#include <string.h>

enum { FEW = 64 };

/* Sorts by one byte of the key, stable. */
static void distribute(const struct gt_pair *from, struct gt_pair *to, size_t n, int shift)
{
    size_t next[256] = {0}; /* how often a value occurs, then where its next pair goes */
    for (size_t i = 0; i < n; i++)
        next[from[i].key >> shift & 255]++;
    for (size_t value = 0, sum = 0; value < 256; value++) {
        size_t count = next[value];
        next[value] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[next[from[i].key >> shift & 255]++] = from[i];
}

/* For few pairs: the number of moves grows with the square of n. */
static void insert(struct gt_pair *pairs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct gt_pair pair = pairs[i];
        size_t at = i;
        for (; at && pairs[at - 1].key > pair.key; at--)
            pairs[at] = pairs[at - 1];
        pairs[at] = pair;
    }
}

bool gt_sort(struct gt_pair *pairs, size_t n)
{
    bool sorted = true;
    uint64_t differ = 0; /* bits that are not the same in all keys */
    for (size_t i = 1; i < n; i++) {
        sorted &= pairs[i - 1].key <= pairs[i].key;
        differ |= pairs[i - 1].key ^ pairs[i].key;
    }
    if (sorted)
        return true;
    if (n <= FEW) {
        insert(pairs, n);
        return true;
    }
    struct gt_pair *scratch = gt_pages_alloc(n * sizeof *scratch);
    if (!scratch)
        return false;
    struct gt_pair *from = pairs, *to = scratch;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 255))
            continue;
        distribute(from, to, n, shift);
        struct gt_pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != pairs)
        memcpy(pairs, from, n * sizeof *pairs);
    gt_pages_free(scratch, n * sizeof *scratch);
    return true;
}

static uint64_t key_of(const void *item, size_t key_bytes)
{
    return key_bytes == 4 ? *(const uint32_t *)item : *(const uint64_t *)item;
}

size_t gt_count_up_to(const void *items, size_t n, size_t bytes, size_t key_bytes, uint64_t key)
{
    return GT_COUNT_FIRST(n, i, key_of((const char *)items + i * bytes, key_bytes) <= key);
}
