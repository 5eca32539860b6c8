/*
 * The black box: memory that outlives the process when it is killed. It is one file, mapped for all
 * of the process's life. It holds what threads have written and no trace contains yet: event
 * buffers, the flight recorder's memory, and the stacks and strings of events. A store into the box
 * costs as much as a store into other memory. A process that ends normally removes the file;
 * otherwise `gotrace recover` reads it (live.h says what is where).
 *
 * Without a box, the functions here return ordinary memory.
 */
#pragma once

#include "push.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_BOX_MAGIC UINT64_C(0x31786f62746f67) /* "gotbox1" */

enum gt_box_root { GT_BOX_ERA, GT_BOX_MODULES, GT_BOX_REWAITS, GT_BOX_KEPT, GT_BOX_ROOTS };

/* The first page of the file. Addresses are the recording process's; `at` is the box's own. */
struct gt_box {
    uint64_t magic, layout; /* layout: of the structures in the box; the reader's must be equal */
    uint64_t at, size;
    uint64_t buffers;                         /* offset of the buffers; tables are before it */
    _Atomic uint64_t tables_end, buffers_end; /* offsets up to which memory is allocated */
    uint64_t kept;                            /* offset of the flight recorder's memory */
    _Atomic uint64_t outside;                 /* bytes that had to be allocated outside the box */
    _Atomic uint64_t buffers_outside;         /* the part of them that is event buffers */
    _Atomic uint64_t root[GT_BOX_ROOTS];      /* addresses; 0: nothing yet */
};

/* Room behind the first page, for live.h. */
enum { GT_BOX_PAGE = 4096, GT_BOX_LIVE = 15 * GT_BOX_PAGE };

extern struct gt_box *gt_box; /* NULL: there is none */

static inline bool gt_box_is_open(void)
{
    return gt_box;
}

static inline bool gt_box_has(const void *p)
{
    return gt_box && (uintptr_t)p - (uintptr_t)gt_box < gt_box->size;
}

/*
 * Makes the box from the file `fd`, which it closes. tables, buffers: how many bytes there is room
 * for; only used pages take disk space. kept: how many bytes the flight recorder keeps at a time.
 * Returns 0 or -errno.
 */
int gt_box_open(int fd, uint64_t layout, size_t tables, size_t buffers, size_t kept);

/* Zeroed memory of the box, or of gt_pages_alloc if the box is absent or full. Any context. */
void *gt_box_alloc_table(size_t size);

/* As gt_box_alloc_table, but only the first page has disk space: see gt_box_fill. */
void *gt_box_alloc_buffer(size_t size);

/* A buffer outside the box. */
void *gt_box_alloc_outside(size_t size);

/* Takes disk space for a buffer. true: all of it has some, or is outside the box. Any context. */
bool gt_box_fill(void *p, size_t size);

/*
 * Whole pages for the flight recorder, not zeroed. At any time at most `kept` bytes (gt_box_open)
 * are allocated. The caller frees pages in the order of their allocation. NULL: there is no box, or
 * no disk space. Drain side.
 */
void *gt_box_alloc_kept(size_t size);

/* Counts memory that was allocated outside the box. */
void gt_box_count_outside(size_t size);

/* Frees memory in the box: a table, in any context, or pages of gt_box_alloc_kept. */
void gt_box_free(void *p, size_t size);

/* Sets the address at which a reader of the box finds these structures. */
static inline void gt_box_set_root(enum gt_box_root root, const void *p)
{
    if (gt_box)
        atomic_store_explicit(&gt_box->root[root], (uintptr_t)p, memory_order_release);
}

/* Pushes p onto the list at `root`; next: p's link. Any thread. */
static inline void gt_box_push(enum gt_box_root root, const void *p, uint64_t *next)
{
    if (!gt_box)
        return;
    GT_PUSH(&gt_box->root[root], (uintptr_t)p, next);
}

/*
 * In a forked child: leaves the box, which is the parent's. Memory of the child's own replaces it
 * at the same addresses. `keep` fills it: each p that the child keeps goes to copy + (p - base).
 */
void gt_box_leave(void (*keep)(char *copy, const char *base));
