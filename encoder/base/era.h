/*
 * The memory of stacks and strings. A program that runs for months makes ever new ones, so they are
 * kept by eras: all that is new goes to the newest; when that has grown to its share another one
 * begins, what is still in use is made anew there, and an older one is given back as a whole, when
 * nobody has anything of it any more. When that is, is the subject of renewal.h.
 *
 * An era may be filled by any thread in any context; all else is the drain side's.
 */
#ifndef GT_ERA_H
#define GT_ERA_H

#include "arena.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_stack;
struct gt_string;

enum { GT_ERA_STACKS = 16384, GT_ERA_STACKS_PART = 64, GT_ERA_STRINGS = 4096 };

struct gt_era {
    uint32_t number;
    bool used_up;         /* threads have nothing of it any more: only the flight recorder has */
    bool pinned;          /* a thread that will never be seen again may have something of it */
    uint32_t first_id;    /* of its stacks */
    struct gt_era *older; /* a list of all that there are */
    _Atomic size_t bytes;
    struct gt_arena arena;
    struct gt_string *first_string, *last_string; /* strings.c: as they came */
    struct gt_string *strings[GT_ERA_STRINGS];
    _Atomic bool any_of[GT_ERA_STACKS / GT_ERA_STACKS_PART]; /* of so many, one after the other */
    _Atomic(struct gt_stack *) stacks[GT_ERA_STACKS];
};

/* The newest. Any context; acquire, and one look is for one entry. */
extern _Atomic(struct gt_era *) gt_era_newest;

static inline struct gt_era *gt_era_now(void)
{
    return atomic_load_explicit(&gt_era_newest, memory_order_acquire);
}

/* Memory of that era, as from an arena. */
void *gt_era_alloc(struct gt_era *era, size_t size);

/* Counts memory of other kinds, that ends with the era, to the newest. */
void gt_era_count(size_t bytes);

/*
 * The share of an era. From there on *crowded is called, from twice that on threads should wait
 * (gt_era_full), and four times that is refused by gt_era_may_grow. 0, as at first: any.
 */
void gt_era_set_share(size_t bytes, void (*crowded)(void));
extern _Atomic bool gt_era_full;
bool gt_era_may_grow(const struct gt_era *era);
bool gt_era_is_crowded(void);

/* Waits, a moment at most, until gt_era_full is false. errno is kept. */
void gt_era_wait(void);

/* Drain side ---------------------------------------------------------------------------------- */

/* The next one begins. first_id: of its stacks. false: no memory. */
bool gt_era_begin(uint32_t first_id);

/* Gives back all that are used up and older than `from`. */
void gt_era_release(uint32_t from);

/* Bytes of those that the newest are not: that are used up. Any thread. */
size_t gt_era_past_bytes(void);

/* None that there is now will ever be given back. */
void gt_era_pin_all(void);

/* For gt_box_leave. */
void gt_era_keep_all(char *copy, const char *base);

#endif
