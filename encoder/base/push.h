/*
 * Pushes onto a list without a lock. Other code walks such a list or takes it whole, but never
 * takes a single item, so that no ABA problem arises.
 */
#pragma once

#include <stdatomic.h>

/*
 * Pushes `item` onto the list at `head`; link: where the item keeps the next one. The order is
 * release: the item is complete for whoever loads the head with acquire, and walks from there.
 */
#define GT_PUSH(head, item, link)                                                                  \
    do {                                                                                           \
        __typeof__(head) gt_head = (head);                                                         \
        __typeof__(link) gt_link = (link);                                                         \
        *gt_link = atomic_load_explicit(gt_head, memory_order_relaxed);                            \
        while (!atomic_compare_exchange_weak_explicit(gt_head, gt_link, (item),                    \
                                                      memory_order_release, memory_order_relaxed)) \
            ;                                                                                      \
    } while (0)
