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
 * | forget (RMW of `forgets`, fence, relaxed stores) | | see below | harmless twice |
 *
 * Insert and forget at once: either insert sees the new number and takes its entry out, or the
 * entry is among those that forget empties.
 *
 * A layout can be wrong only for a moment. One thread has unloaded a library, but its dlclose has
 * not returned to our hook. Another thread has already loaded a second library at the same
 * addresses, and runs it. Until the epoch changes, a stack through the second library may come out
 * wrong.
 *
 * Any context after init. errno may change.
 */
#pragma once

#include "cfi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A layout in a word, and its place in the cache; in brackets where GT_ARCH_RA_BELOW is 0:
 *
 * 63                30 29          10        9    4  3  2    0
 * ┌──────────────────┬──────────────┬───────┬──────┬───┬──────┐
 * │ tag       [- 32] │ cfa (signed) │ [ra]  │ fp   │ d │ kind │
 * └──────────────────┴──────────────┴───────┴──────┴───┴──────┘
 *                     31          16 15   10
 * - Slot and tag together are the address, in steps of GT_ARCH_CODE_ALIGN, times an odd number,
 *   modulo 2^48 of bytes. No two addresses have both in common.
 * - cfa: in steps of GT_ARCH_STACK_ALIGN.
 * - ra: words below the CFA; 0: in its register. With the highest bit set: words above where the
 *   CFA is counted from.
 * - fp: words below the return address, plus one; 0: not saved.
 * - d: the entry stands in the neighbour of its slot.
 */
enum {
    GT_LAYOUT_SLOT_BITS = 14,
    GT_LAYOUT_SLOTS = 1 << GT_LAYOUT_SLOT_BITS,
    GT_LAYOUT_ADDRESS_BITS = 48 - GT_ARCH_CODE_ALIGN,
    GT_LAYOUT_TAG_BITS = GT_LAYOUT_ADDRESS_BITS - GT_LAYOUT_SLOT_BITS,
    GT_LAYOUT_DISPLACED = 8,
    GT_LAYOUT_KIND = 7,
    GT_LAYOUT_FP_SHIFT = 4,
    GT_LAYOUT_RA_SHIFT = 10,
    GT_LAYOUT_RA_ABOVE = GT_LAYOUT_RA_MAX + 1,
    GT_LAYOUT_CFA_SHIFT = 64 - GT_LAYOUT_TAG_BITS - GT_LAYOUT_CFA_BITS,
};
_Static_assert(GT_LAYOUT_CFA_SHIFT == GT_LAYOUT_RA_SHIFT + (GT_ARCH_RA_BELOW ? 0 : 6), "no gap");

extern struct gt_layouts {
    _Atomic uint64_t cache[GT_LAYOUT_SLOTS];
    _Atomic uint32_t epoch; /* of the layouts in the cache */
    _Atomic uint32_t forgets;
} gt_layouts;

struct gt_layout_place {
    uint32_t slot;
    uint64_t tag; /* shifted to its place in a word */
};

static inline struct gt_layout_place gt_layout_place(uintptr_t look)
{
    uint64_t odd = 0x9e3779b97f4bull << (64 - GT_LAYOUT_ADDRESS_BITS);
    uint64_t mixed = (uint64_t)(look >> GT_ARCH_CODE_ALIGN) * odd;
    return (struct gt_layout_place){(uint32_t)(mixed >> (64 - GT_LAYOUT_SLOT_BITS)),
                                    (mixed << GT_LAYOUT_SLOT_BITS) &
                                        ~0ull << (64 - GT_LAYOUT_TAG_BITS)};
}

static inline enum gt_frame_kind gt_layout_kind(uint64_t word)
{
    return (enum gt_frame_kind)(word & GT_LAYOUT_KIND);
}

/* The CFA's offset in bytes. */
static inline uintptr_t gt_layout_cfa(uint64_t word)
{
    enum { DOWN = 64 - GT_LAYOUT_CFA_BITS - GT_ARCH_STACK_ALIGN };
    return (uintptr_t)((int64_t)(word << GT_LAYOUT_TAG_BITS) >> DOWN) & ~(uintptr_t)0
                                                                            << GT_ARCH_STACK_ALIGN;
}

/* How many bytes below the CFA the return address is; 0: in its register. */
static inline uintptr_t gt_layout_ra(uint64_t word)
{
    if (GT_ARCH_RA_BELOW)
        return GT_ARCH_RA_BELOW;
    uintptr_t words = word >> GT_LAYOUT_RA_SHIFT & GT_LAYOUT_RA_MAX;
    bool above = word >> GT_LAYOUT_RA_SHIFT & GT_LAYOUT_RA_ABOVE;
    return above ? gt_layout_cfa(word) - 8 * words : 8 * words;
}

/* How many bytes below the CFA the caller's fp is; 0: not saved. */
static inline uintptr_t gt_layout_fp(uint64_t word)
{
    uintptr_t bytes = word >> (GT_LAYOUT_FP_SHIFT - 3) & GT_LAYOUT_FP_MAX << 3;
    return bytes ? bytes + gt_layout_ra(word) - 8 : 0;
}

uint64_t gt_layout_lookup_slow(uintptr_t look);

/* The word of the layout at an address, as for gt_cfi_layout. Needs 1 KiB of stack at most. */
static inline uint64_t gt_layout_lookup(uintptr_t look)
{
    enum { DIFFERENT = 64 - GT_LAYOUT_TAG_BITS };
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

/* To be called before lookups in that epoch. */
static inline void gt_layouts_are_of(uint32_t epoch)
{
    /* acquire: pairs with the release in gt_layouts_forget. */
    if (__builtin_expect(atomic_load_explicit(&gt_layouts.epoch, memory_order_acquire) != epoch, 0))
        gt_layouts_forget(epoch);
}

/* Asks the kernel whether the page can be read. errno may change. */
bool gt_page_readable(uintptr_t page);

/*
 * Asks the kernel whether an object of the program, of at least a byte, can be read. errno is kept.
 */
bool gt_can_read(const void *at, size_t size);

/* The kernel's number of a thread of this process; 0: it has ended. Its clock's number tells. */
uint32_t gt_number_of_thread(uintptr_t thread);

/*
 * A loaded object: where it begins, its run-time address minus its ELF address, its .eh_frame_hdr
 * or 0.
 */
struct gt_layout_object {
    uintptr_t start, bias, hdr;
};

/*
 * Finds the object that is at an address now; false: none. gt_layouts_init sets it to libc's
 * _dl_find_object (glibc 2.35 or later); for another libc capture.c sets it.
 */
extern bool (*gt_layouts_find)(uintptr_t pc, struct gt_layout_object *found);

/* In the constructor. false: there is no function to find objects. */
bool gt_layouts_init(void);
