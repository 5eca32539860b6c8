/*
 * The memory of stacks and strings. A program that runs for months makes ever new stacks and
 * strings, so the memory is divided into eras. New entries go to the newest era. When it has grown
 * to its share, another era begins, and entries still in use are made anew there. An older era is
 * freed as a whole, once no thread refers to an entry of it. renewal.h decides when.
 *
 * Any thread may fill an era, in any context. Everything else is for the drain side.
 */
#pragma once

#include "arena.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_stack;
struct gt_string;

enum { GT_ERA_STACKS = 16384, GT_ERA_STACKS_PART = 64, GT_ERA_STRINGS = 4096 };

struct gt_era {
    uint32_t number;
    bool used_up;         /* no thread refers to it any more; the flight recorder may */
    bool pinned;          /* never freed: a thread that will not be seen again may refer to it */
    struct gt_era *older; /* the list of all eras */
    _Atomic size_t bytes;
    struct gt_arena arena;
    struct gt_string *first_string, *last_string; /* strings.c: in the order of their making */
    struct gt_string *strings[GT_ERA_STRINGS];
    _Atomic bool any_of[GT_ERA_STACKS / GT_ERA_STACKS_PART]; /* any in this part of `stacks` */
    _Atomic(struct gt_stack *) stacks[GT_ERA_STACKS];
};

/* The newest era. Any context. Loaded with acquire, once for each entry that a thread wants. */
extern _Atomic(struct gt_era *) gt_era_newest;

static inline struct gt_era *gt_era_now(void)
{
    return atomic_load_explicit(&gt_era_newest, memory_order_acquire);
}

/* Allocates memory that is freed with the era. NULL: there is none. */
void *gt_era_alloc(struct gt_era *era, size_t size);

/* Charges memory from elsewhere that is freed with the era to the newest one. */
void gt_era_count(size_t bytes);

/*
 * The share of an era. An era that reaches it calls *crowded. From twice the share on, threads
 * should wait (gt_era_full). From four times on, gt_era_may_grow refuses. 0, at first: no limit.
 */
void gt_era_set_share(size_t bytes, void (*crowded)(void));
extern _Atomic bool gt_era_full;
bool gt_era_may_grow(const struct gt_era *era);
bool gt_era_is_crowded(void);

/* Waits, 10 ms at most, for the next era. Clears gt_era_full if it is outdated. errno is kept. */
void gt_era_wait(void);

/* Drain side ---------------------------------------------------------------------------------- */

/* Begins the next era. false: no memory. */
bool gt_era_begin(void);

/* Frees all eras that are used up, not pinned, and older than number `from`. */
void gt_era_release(uint32_t from);

/* Bytes of the used-up eras that the last gt_era_release did not free. Any thread. */
size_t gt_era_past_bytes(void);

/* Eras that exist now will never be freed. */
void gt_era_pin_all(void);

/* For gt_box_leave: copies the eras that are in the black box at `base` to `copy`. */
void gt_era_keep_all(char *copy, const char *base);
