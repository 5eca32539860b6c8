/*
 * Brief waits: a mutex was taken, and free again before the wait was worth an event. They are
 * counted for each lock, with their time; the counts stand at the end of a trace (GT_BRIEF). They
 * tell how contended a lock is whose holds take at most a few microseconds.
 *
 * Each thread counts in memory of its own, so that no other thread has to wait for it.
 */
#pragma once

#include "encoder/thread/held.h"

#include <stdatomic.h>

struct gt_brief_counts {
    _Atomic uint64_t n, units; /* only their thread writes them */
};

/* The calling thread's counts for a mutex that it has found taken; NULL: nothing is counted. */
struct gt_brief_counts *gt_brief_of(const void *mutex);

/* Adds a wait of so many units of the trace's clock. By the counts' thread. */
static inline void gt_brief_add(struct gt_brief_counts *counts, uint64_t units)
{
    atomic_store_explicit(&counts->n, atomic_load_explicit(&counts->n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&counts->units,
                          atomic_load_explicit(&counts->units, memory_order_relaxed) + units,
                          memory_order_relaxed);
}

/* A recording begins: called by the drain side, or in a forked child. */
void gt_brief_reset(void);

/* Drain side: subtracts the counts that gt_brief_tell has told last. */
void gt_brief_forget_told(void);

/* Drain side: tells a text for each lock. */
void gt_brief_tell(gt_tell_fn *tell);
