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
 * How many of the numbers below n meet the condition, if all of them come first: for sorted arrays
 * whose items gt_count_up_to does not read. i: the number's name in the condition.
 */
#define GT_COUNT_FIRST(n, i, condition)                 \
    __extension__({                                     \
        size_t gt_low = 0, gt_high = (n);               \
        while (gt_low < gt_high) {                      \
            size_t i = gt_low + (gt_high - gt_low) / 2; \
            if (condition)                              \
                gt_low = i + 1;                         \
            else                                        \
                gt_high = i;                            \
        }                                               \
        gt_low;                                         \
    })

/*
 * How many of n sorted items have a key up to `key`. An item has `bytes` bytes and begins with its
 * own key, of key_bytes, 4 or 8.
 */
size_t gt_count_up_to(const void *items, size_t n, size_t bytes, size_t key_bytes, uint64_t key);
