/*
 * The stack table gives each list of PCs one id, valid until its era is freed (era.h). Any thread
 * may look up and insert; only the drain side walks the table.
 *
 * - A lookup loads the bucket with acquire: it sees a whole entry or none.
 * - An insertion publishes the entry by a release CAS of the bucket, again until that succeeds. Two
 *   threads that insert the same stack make two ids, which is harmless.
 * - The drain side's walk loads the bucket with acquire, as a lookup does.
 *
 * Entries are immutable except for `used`, `written` and `epoch`. `epoch` may be any epoch in which
 * the PCs belong to the same code. Entries are freed with their era.
 */
#pragma once

#include "encoder/base/era.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_stack {
    struct gt_stack *next;
    uint64_t hash;
    uint32_t id;    /* unique in a trace */
    uint32_t epoch; /* of the module map the PCs belong to; atomic */
    uint32_t n;
    uint32_t era;
    /*
     * The last generation of either parity that used this stack: two generations are open at a
     * time while one is closed, and each must find its own mark.
     */
    _Atomic uint32_t used[2];
    uint32_t written; /* file/v1/tables.c: the trace in which it stands */
    uint64_t pcs[];
};

/* Ids are from 1 up to here. */
#define GT_STACK_ID_MAX 0x7ffffff0u

/*
 * The entry for these n PCs (leaf first, n <= GT_FRAMES_MAX), made if need be. NULL: memory is
 * exhausted, which is counted (events then carry no stack). Any thread, but a signal handler must
 * not call this in the middle of another call of its thread.
 */
struct gt_stack *gt_stacks_get(const uint64_t *pcs, uint32_t n, uint32_t epoch);

/*
 * The hash of PCs is made from the outermost frame inward: GT_STACKS_SEED, then gt_hash_mix for
 * every PC but the leaf. So a caller can keep the hash of frames that stay the same.
 */
#define GT_STACKS_SEED 0x243f6a8885a308d3u

/* Like gt_stacks_get, for a caller that has that hash. */
struct gt_stack *gt_stacks_get_hashed(const uint64_t *pcs, uint32_t n, uint32_t epoch,
                                      uint64_t hash);

/*
 * Whether these PCs belong to the same code in both epochs of the module map: then the stack needs
 * no second entry. Any context. NULL: they never count as the same.
 */
extern bool (*gt_stacks_same_code)(const uint64_t *pcs, uint32_t n, uint32_t one, uint32_t other);

static inline uint32_t gt_stack_epoch(const struct gt_stack *s)
{
    return __atomic_load_n(&s->epoch, __ATOMIC_RELAXED);
}

/* How many stacks could not be kept, so that events have none. */
uint64_t gt_stacks_lost(void);

/*
 * The stack's entry in the newest era, for a thread that keeps it there: in its own state, or in
 * the state of a thread that it may write to. An older entry is never freed while a thread that
 * uses it is inside.
 */
static inline struct gt_stack *gt_stack_renewed(struct gt_stack *s)
{
    if (!s || s->era == gt_era_now()->number)
        return s;
    return gt_stacks_get(s->pcs, s->n, gt_stack_epoch(s));
}

/* Adds the entry that another process had, with its id and marks of use. NULL: no memory. */
struct gt_stack *gt_stacks_adopt(const struct gt_stack *its);

/*
 * Marks the stack as used in generation gen, which the caller has pinned. Returns its id, 0 for
 * NULL.
 */
static inline uint32_t gt_stack_use(struct gt_stack *s, uint32_t gen)
{
    if (!s)
        return 0;
    if (atomic_load_explicit(&s->used[gen & 1], memory_order_relaxed) != gen)
        atomic_store_explicit(&s->used[gen & 1], gen, memory_order_relaxed);
    return s->id;
}

/* Calls fn for every stack used in gen, which no writer has pinned any more. */
void gt_stacks_each(uint32_t gen, void (*fn)(void *arg, struct gt_stack *s), void *arg);

/* Calls fn for every stack that there is. */
void gt_stacks_each_kept(void (*fn)(void *arg, struct gt_stack *s), void *arg);

void gt_stacks_after_fork(void);

/* See gt_strings_catch_up. */
void gt_stacks_catch_up(void);
