/*
 * Sorting without qsort, which calls malloc; searching in sorted arrays; and orders for the qsort
 * of the command, which may call malloc.
 */
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

/*
 * Defines a function for qsort, which compares the items x and y of an array. order: an expression
 * of which of them comes first, such as GT_UP(lock) ?: GT_DOWN(ns) for the one with the smaller
 * x->lock; if these are equal, for the one with the larger x->ns.
 */
#define GT_ORDER(name, type, order)               \
    static int name(const void *a, const void *b) \
    {                                             \
        const type *x = a, *y = b;                \
        return order;                             \
    }

/* The same for an array of pointers to such items. */
#define GT_ORDER_POINTERS(name, type, order)                       \
    static int name(const void *a, const void *b)                  \
    {                                                              \
        const type *x = *(void *const *)a, *y = *(void *const *)b; \
        return order;                                              \
    }

#define GT_UP(key) ((x->key > y->key) - (x->key < y->key))
#define GT_DOWN(key) ((x->key < y->key) - (x->key > y->key))
