/* Sorting without qsort, which calls malloc. */
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

#endif
