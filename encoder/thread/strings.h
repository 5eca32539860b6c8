/*
 * The string table: text ↔ one id, as long as its era lasts (era.h), reasons for ever. Reasons have
 * the ids of enum gt_reason. The empty string has the id 0, which readers of every format know:
 * they refuse its text in a v1 file. One lock guards the table: threads of the program rarely
 * intern (their names), mostly the drain side does. Strings of which a program may give any number
 * are in texts.h. Any thread, but a signal handler must not call this in the middle of another call
 * of its thread.
 */
#pragma once

#include "encoder/base/era.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_string {
    struct gt_string *next_in_bucket, *next;
    uint64_t hash;
    uint32_t id;
    uint32_t len;
    uint32_t era;             /* 0: a reason */
    uint8_t of_lock;          /* 1: text is a struct gt_held_key; a damaged box may have others */
    _Atomic uint32_t used[2]; /* as in struct gt_stack */
    uint32_t written;         /* file/v1/tables.c: the trace in which it stands; v2.c: the tables */
    char text[];
};

/*
 * The entry of `text`, cut at GT_STRING_MAX bytes, the readers' limit. NULL: memory is exhausted,
 * or the table's lock is not available (GT_LOCK_PATIENCE_NS).
 */
struct gt_string *gt_strings_intern(const char *text);

/* Like gt_strings_intern, for a struct gt_held_key, which becomes text when it is written. */
struct gt_string *gt_strings_intern_lock(const void *key, size_t size);

/* Adds the entry that another process had, with its id and marks of use. NULL: no memory. */
struct gt_string *gt_strings_adopt(const struct gt_string *its);

/* Makes later ids greater than this one, which another process has given. */
void gt_strings_adopt_id(uint32_t id);

/* The string's entry in the newest era, see gt_stack_renewed. NULL also as in gt_strings_intern. */
struct gt_string *gt_string_renewed(struct gt_string *s);

/* Marks the string as used in generation gen, which the caller has pinned. Returns its id. */
static inline uint32_t gt_string_use(struct gt_string *s, uint32_t gen)
{
    atomic_store_explicit(&s->used[gen & 1], gen, memory_order_relaxed);
    return s->id;
}

/* Calls fn for every string used in gen, and all reasons. Other threads may intern. Drain side. */
void gt_strings_each(uint32_t gen, void (*fn)(void *arg, struct gt_string *s), void *arg);

/* Like gt_strings_each, for strings whose `written` is `mark`. */
void gt_strings_each_written(uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg);

void gt_strings_after_fork(void);

/*
 * In a forked child, whose copy of the tables, out of the black box, is younger than the fork. All
 * ids in the copy count as taken, and none of its entries stands in a file of the child's.
 */
void gt_strings_catch_up(void);
