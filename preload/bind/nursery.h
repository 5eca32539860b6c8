/*
 * Memory for allocations that must not reach the program's allocator. These are the allocations of
 * dlsym while the real functions are looked up, and all of the drain thread's. When elfutils is
 * loaded, the loader allocates with locks held. A thread inside the allocator may be waiting for
 * those locks (jemalloc creates threads with a lock held). Memory that was given out is never used
 * again.
 *
 * Any thread, any time, signal handlers too.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_NURSERY_BYTES (4u << 20) /* zeros: pages that are not used take no memory */

extern struct gt_nursery {
    _Alignas(16) char bytes[GT_NURSERY_BYTES];
    _Atomic size_t used;
} gt_nursery;

/* The calling thread's allocations come from the nursery, as long as there is room. */
extern __thread bool gt_nursery_only __attribute__((tls_model("initial-exec")));

static inline bool gt_in_nursery(const void *p)
{
    return (uintptr_t)p - (uintptr_t)gt_nursery.bytes < GT_NURSERY_BYTES;
}

/* The size that a block of the nursery was asked for with. */
static inline size_t gt_nursery_size(const void *p)
{
    return ((const size_t *)p)[-2];
}

/* Zeroed, aligned to 16. NULL: no room left. */
void *gt_nursery_alloc(size_t size);
void *gt_nursery_calloc(size_t n, size_t size);

/* realloc and free, before the real functions are known. */
void *gt_nursery_realloc(void *p, size_t size);
void gt_nursery_free(void *p);

/*
 * The nursery gives out nothing any more. Where calls come to us only at times, a block of the
 * nursery could go to the program's free.
 */
void gt_nursery_close(void);
