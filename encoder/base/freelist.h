/*
 * A list of free items, for any thread in any context. It has no lock: the lock's holder could be
 * suspended, see GT_LOCK_PATIENCE_NS. The memory of an item must stay mapped for ever.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of an item, aligned to 16 bytes. */
struct gt_free {
    _Atomic uint64_t below;
};

/*
 * The address of the top item, and in the 20 bits that an address leaves the number of changes so
 * far. A pop that is interrupted between its two looks at the top must notice that the list has
 * changed. (It fails only if exactly a million changes, or a multiple, come meanwhile and leave the
 * same top.)
 */
struct gt_freelist {
    _Atomic uint64_t top;
};

#define GT_FREE_ADDRESS UINT64_C(0x0000fffffffffff0)

static inline uint64_t gt_free_next_top(uint64_t top, uint64_t address)
{
    uint64_t changes = ((top >> 48 << 4) | (top & 15)) + 1;
    return address | (changes >> 4) << 48 | (changes & 15);
}

/* An item whose address needs more bits is forgotten. */
static inline void gt_freelist_push(struct gt_freelist *list, struct gt_free *item)
{
    uint64_t address = (uint64_t)(uintptr_t)item;
    uint64_t top = atomic_load_explicit(&list->top, memory_order_relaxed);
    if (address & ~GT_FREE_ADDRESS)
        return;
    do
        atomic_store_explicit(&item->below, top & GT_FREE_ADDRESS, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &list->top, &top, gt_free_next_top(top, address), memory_order_release,
        memory_order_relaxed)); /* pairs with the acquire in pop */
}

/* Returns NULL if the list is empty. */
static inline void *gt_freelist_pop(struct gt_freelist *list)
{
    uint64_t top = atomic_load_explicit(&list->top, memory_order_acquire), below;
    struct gt_free *item;
    do {
        item = (struct gt_free *)(uintptr_t)(top & GT_FREE_ADDRESS);
        if (!item)
            return NULL;
        below = atomic_load_explicit(&item->below, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&list->top, &top, gt_free_next_top(top, below),
                                                    memory_order_acquire, memory_order_acquire));
    return item;
}
