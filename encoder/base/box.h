/*
 * The black box: memory that is still there when the process has been killed. One file, mapped for
 * all of the process's life, has what threads have written and no trace has yet: event buffers, the
 * flight recorder's memory, and the stacks and strings that they refer to. To write there costs
 * what memory costs. When the process ends well the file is removed; else `gotrace recover` reads
 * it (live.h says what is where).
 *
 * Without one all of this is memory like any other.
 */
#ifndef GT_BOX_H
#define GT_BOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_BOX_MAGIC UINT64_C(0x31786f62746f67) /* "gotbox1" */

enum gt_box_root { GT_BOX_ERA, GT_BOX_MODULES, GT_BOX_REWAITS, GT_BOX_KEPT, GT_BOX_ROOTS };

/* The first page. Addresses are those that the process had; `at` is its own. */
struct gt_box {
    uint64_t magic, layout; /* layout: of what is in it, the reader's must be the same */
    uint64_t at, size;
    uint64_t buffers;                         /* where they begin; before are tables */
    _Atomic uint64_t tables_end, buffers_end; /* so far; offsets, as above */
    uint64_t kept;                            /* where the flight recorder's memory begins */
    _Atomic uint64_t outside;                 /* so much was to be had elsewhere only */
    _Atomic uint64_t buffers_outside;         /* of that */
    _Atomic uint64_t root[GT_BOX_ROOTS];      /* addresses; 0: nothing yet */
};

/* Behind that page, for live.h. */
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
 * Makes one of the file that fd is, which is closed: room for so much, of which only what is used
 * takes space. kept: what the flight recorder has at a time. 0 or -errno.
 */
int gt_box_open(int fd, uint64_t layout, size_t tables, size_t buffers, size_t kept);

/* Zeroed memory of the box; or, where it has none, as gt_pages_alloc. Any context. */
void *gt_box_alloc_table(size_t size);
void *gt_box_alloc_buffer(size_t size);

/*
 * The same for whole pages, with anything in them, of which all that there are at a time are no
 * more than the box was opened for; they are given back in the order in which they were taken.
 * NULL: there is no box, or no space for it. Drain side.
 */
void *gt_box_alloc_kept(size_t size);

/* So much is elsewhere. */
void gt_box_count_outside(size_t size);

/* Gives back what is in the box: a table, in any context, or what the flight recorder kept. */
void gt_box_free(void *p, size_t size);

/* What others find the rest by. */
static inline void gt_box_set_root(enum gt_box_root root, const void *p)
{
    if (gt_box)
        atomic_store_explicit(&gt_box->root[root], (uintptr_t)p, memory_order_release);
}

/* Adds to a list there; next: p's link. Any thread. */
static inline void gt_box_push(enum gt_box_root root, const void *p, uint64_t *next)
{
    if (!gt_box)
        return;
    *next = atomic_load_explicit(&gt_box->root[root], memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&gt_box->root[root], next, (uintptr_t)p,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

/*
 * In a forked child: the box is the parent's. Where it was there is memory of the child's own, with
 * what `keep` puts into its place: copy + (p - base) for every p that is kept.
 */
void gt_box_leave(void (*keep)(char *copy, const char *base));

#endif
