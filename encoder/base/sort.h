/* Sorting without qsort, which calls malloc; and finding in what is sorted. */
#ifndef GT_SORT_H
#define GT_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_pair {
    uint64_t key, value;
};

/* Stable, by key, ascending; false when there is no memory for its scratch. */
bool gt_sort(struct gt_pair *pairs, size_t n);

/*
 * How many of n sorted items are up to the key. Each has so many bytes and begins with its own key,
 * of key_bytes, 4 or 8.
 */
size_t gt_count_up_to(const void *items, size_t n, size_t bytes, size_t key_bytes, uint64_t key);

#endif
