/*
 * How the frames of the code at any address are laid out (cfi.h), remembered for all threads.
 *
 * The cache is one word per address, read and written atomically, so any mix of threads and signal
 * handlers sees whole entries. It is emptied when the epoch of the module map changes:
 *
 * | | lookup | insert | forget |
 * |---|---|---|---|
 * | lookup (relaxed load) | nothing | sees all of an entry or none | may use an old one once more |
 * | insert (relaxed store, fence, load of `forgets`) | | later one stays | see below |
 * | forget (RMW of `forgets`, fence, relaxed stores) | | either insert sees the new number and
 * takes its entry out, or the entry is among those that forget empties | harmless twice |
 *
 * A layout can be wrong only while one thread has unloaded a library (dlclose has not returned to
 * our hook), another one has already loaded a second one at its addresses and runs it: until the
 * epoch moves, a stack through that may come out wrong.
 *
 * Any context after init. errno may change.
 */
#ifndef GT_LAYOUTS_H
#define GT_LAYOUTS_H

#include "cfi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A layout in a word, and its place in the cache:
 *
 * 63                30 29          10 9    4  3  2    0
 * ┌──────────────────┬──────────────┬──────┬───┬──────┐
 * │ tag              │ cfa (signed) │ fp   │ d │ kind │
 * └──────────────────┴──────────────┴──────┴───┴──────┘
 * Slot and tag together are the address times an odd number, modulo 2^48: no two addresses have
 * both in common. d: the entry stands in the neighbour of its slot.
 */
enum {
    GT_LAYOUT_SLOT_BITS = 14,
    GT_LAYOUT_TAG_BITS = 34,
    GT_LAYOUT_DISPLACED = 8,
    GT_LAYOUT_KIND = 7,
};

extern struct gt_layouts {
    _Atomic uint64_t *cache;
    _Atomic uint32_t epoch; /* the cache is of */
    _Atomic uint32_t forgets;
} gt_layouts;

struct gt_layout_place {
    uint32_t slot;
    uint64_t tag; /* where it stands in a word */
};

static inline struct gt_layout_place gt_layout_place(uintptr_t look)
{
    uint64_t mixed = (uint64_t)look * (0x9e3779b97f4bull << 16);
    return (struct gt_layout_place){(uint32_t)(mixed >> (64 - GT_LAYOUT_SLOT_BITS)),
                                    (mixed << GT_LAYOUT_SLOT_BITS) & ~0x3fffffffull};
}

static inline enum gt_frame_kind gt_layout_kind(uint64_t word)
{
    return (enum gt_frame_kind)(word & GT_LAYOUT_KIND);
}

/* Bytes. */
static inline uintptr_t gt_layout_cfa(uint64_t word)
{
    return (uintptr_t)((int64_t)(word << GT_LAYOUT_TAG_BITS) >> (GT_LAYOUT_TAG_BITS + 7)) &
           ~(uintptr_t)7;
}

/* Bytes below the CFA; 0: not saved. */
static inline uintptr_t gt_layout_fp(uint64_t word)
{
    return (word >> 1) & GT_LAYOUT_FP_MAX << 3;
}

uint64_t gt_layout_lookup_slow(uintptr_t look);

/* The word of the layout at that address, as for gt_cfi_layout. Needs 1 KiB of stack at most. */
static inline uint64_t gt_layout_lookup(uintptr_t look)
{
    enum { DIFFERENT = 30 };
    struct gt_layout_place at = gt_layout_place(look);
    uint64_t word = atomic_load_explicit(&gt_layouts.cache[at.slot], memory_order_relaxed);
    if (__builtin_expect(!((word ^ at.tag) & (~0ull << DIFFERENT | GT_LAYOUT_DISPLACED)) &&
                             word & GT_LAYOUT_KIND,
                         1))
        return word;
    word = atomic_load_explicit(&gt_layouts.cache[at.slot ^ 1], memory_order_relaxed);
    if (!((word ^ at.tag ^ GT_LAYOUT_DISPLACED) & (~0ull << DIFFERENT | GT_LAYOUT_DISPLACED)) &&
        word & GT_LAYOUT_KIND)
        return word;
    return gt_layout_lookup_slow(look);
}

void gt_layouts_forget(uint32_t epoch);

/* Before lookups in that epoch. */
static inline void gt_layouts_are_of(uint32_t epoch)
{
    /* acquire: pairs with forget's release. */
    if (__builtin_expect(atomic_load_explicit(&gt_layouts.epoch, memory_order_acquire) != epoch, 0))
        gt_layouts_forget(epoch);
}

/* Whether the page there can be read: asks the kernel. */
bool gt_page_readable(uintptr_t page);

/* The same for all of a program's object, of at least a byte. errno is kept. */
bool gt_can_read(const void *at, size_t size);

/* In the constructor. false: not on this system. */
bool gt_layouts_init(void);

#endif
