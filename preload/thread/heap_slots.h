/*
 * Where the threads count the bytes of the heap: a slot for each, and one total. heap.h says how.
 * Any thread, any time, signal handlers too.
 */
#pragma once

#include "encoder/base/freelist.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GT_HEAP_FOLD (64 << 10)

struct gt_heap_slot {
    struct gt_free free;
    _Atomic int64_t delta; /* the owner writes, any thread reads */
    uint64_t due;          /* when it may write its next event */
    uint32_t folds;
    struct gt_heap_slot *next; /* all slots */
};

/*
 * The calling thread's slot; NULL: it has not counted yet, it has ended, or nothing is counted at
 * all.
 */
extern __thread struct gt_heap_slot *gt_heap_self __attribute__((tls_model("initial-exec")));

/*
 * Not 0 in a thread that has given its slot back, and now counts in the total. Grows with each
 * count.
 */
extern __thread uint32_t gt_heap_late __attribute__((tls_model("initial-exec")));

extern struct gt_heap_totals {
    _Atomic int64_t total;
    _Atomic int64_t shown; /* by the last HeapAlloc */
} gt_heap;

/* Whether allocations are counted. */
extern bool gt_heap_counting;

/* A slot for the calling thread; NULL: there is no memory. */
struct gt_heap_slot *gt_heap_slot_get(void);

/* Folds the slot into the total, and gives it to the next thread. */
void gt_heap_slot_give(struct gt_heap_slot *s);

/* Folds the slot into the total. What the tracer's own slot has counted is forgotten. */
void gt_heap_slot_fold(struct gt_heap_slot *s);

/* Whether s counts the tracer's own allocations. */
bool gt_heap_slot_is_own(const struct gt_heap_slot *s);

/* The live bytes: the total and all slots. */
int64_t gt_heap_live(void);

/* In a forked child the clock begins anew. */
void gt_heap_slots_after_fork(void);

/* Until the end of the block, or for the rest of the thread, allocations are the tracer's own. */
struct gt_heap_slot *gt_heap_own_begin(void);
void gt_heap_own_end(struct gt_heap_slot **before);
#define GT_HEAP_OWN(name)                                                         \
    __attribute__((cleanup(gt_heap_own_end), unused)) struct gt_heap_slot *name = \
        gt_heap_own_begin()

/* Until the end of the block a thread of the program does work of ours: it keeps errno, too. */
#define GT_OWN_WORK(name) \
    GT_KEEP_ERRNO;        \
    GT_HEAP_OWN(name)
