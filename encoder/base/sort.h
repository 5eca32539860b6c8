/* Sorting without qsort, which calls malloc; and searching in sorted arrays. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_pair {
    uint64_t key, value;
};

/* Sorts by key, ascending, stable. false: there is no memory for the scratch array. */
bool gt_sort(struct gt_pair *pairs, size_t n);

/*
 * How many of n sorted items have a key up to `key`. An item has `bytes` bytes and begins with its
 * own key, of key_bytes, 4 or 8.
 */
size_t gt_count_up_to(const void *items, size_t n, size_t bytes, size_t key_bytes, uint64_t key);
