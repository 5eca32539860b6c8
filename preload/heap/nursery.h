/*
 * Memory for allocations that must not reach the program's allocator: those of dlsym while the real
 * functions are looked up, and all of the drain thread's. The loader allocates, when elfutils is
 * loaded, with locks held that a thread inside the allocator may be waiting for (jemalloc creates
 * threads with a lock held). What was given out is never used again.
 *
 * Any thread, any time, signal handlers too.
 */
#ifndef GT_NURSERY_H
#define GT_NURSERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_NURSERY_BYTES (4u << 20) /* of zeros: what is not used is not there */

extern struct gt_nursery {
    _Alignas(16) char bytes[GT_NURSERY_BYTES];
    _Atomic size_t used;
} gt_nursery;

/* This thread's allocations come from there, as long as there is room. */
extern __thread bool gt_nursery_only __attribute__((tls_model("initial-exec")));

static inline bool gt_in_nursery(const void *p)
{
    return (uintptr_t)p - (uintptr_t)gt_nursery.bytes < GT_NURSERY_BYTES;
}

/* Of a block from there: the size it was asked for with. */
static inline size_t gt_nursery_size(const void *p)
{
    return ((const size_t *)p)[-2];
}

/* Zeroed, aligned to 16. NULL: no room left. */
void *gt_nursery_alloc(size_t size);
void *gt_nursery_calloc(size_t n, size_t size);

/*
 * Gives out nothing any more. Where calls come to us at times only, a block of ours could go to the
 * program's free.
 */
void gt_nursery_close(void);

#endif
