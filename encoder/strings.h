/*
 * The string table: text ↔ one id, as long as its era lasts (era.h), reasons for ever. Reasons have
 * the ids of enum gt_reason. Behind one lock: interning is rare on the program's side (thread
 * names) and otherwise belongs to the drain side. What a program may give any number of is in
 * texts.h. Any thread, not while the same thread is inside.
 */
#ifndef GT_STRINGS_H
#define GT_STRINGS_H

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
    uint8_t of_lock;          /* 1: text is a struct gt_held_key, see gt_held_text; boxes may lie */
    _Atomic uint32_t used[2]; /* as in struct gt_stack */
    uint32_t written;         /* v1/tables.c: in which trace it stands; v2.c: in which tables */
    char text[];
};

/*
 * The entry of `text` (cut at GT_STRING_MAX bytes, the readers' limit); NULL when memory is
 * exhausted, or the table's lock not to be had (GT_LOCK_PATIENCE_NS).
 */
struct gt_string *gt_strings_intern(const char *text);

/* The same for what is put into words when it is written. */
struct gt_string *gt_strings_intern_lock(const void *key, size_t size);

/* The same entry as another process had it, with its id and marks of use. NULL: no memory. */
struct gt_string *gt_strings_adopt(const struct gt_string *its);

/* Later ones are beyond this one, which another process has given. */
void gt_strings_adopt_id(uint32_t id);

/* The same string in the newest era, as gt_stack_renewed; NULL also when that cannot be had. */
struct gt_string *gt_string_renewed(struct gt_string *s);

/* Marks the string as used in generation gen, which the caller has pinned; its id. */
static inline uint32_t gt_string_use(struct gt_string *s, uint32_t gen)
{
    atomic_store_explicit(&s->used[gen & 1], gen, memory_order_relaxed);
    return s->id;
}

/* Calls fn for every string used in gen, and all reasons; others may intern. Drain side. */
void gt_strings_each(uint32_t gen, void (*fn)(void *arg, struct gt_string *s), void *arg);

/* The same for those whose `written` is this, instead of `used`. */
void gt_strings_each_written(uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg);

void gt_strings_after_fork(void);

/*
 * In a forked child, whose copy of the tables, out of the black box, is younger than the fork: the
 * ids of all that it has are taken, and nothing of it stands in a file of the child's.
 */
void gt_strings_catch_up(void);

#endif
