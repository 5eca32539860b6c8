/* See strings.h. */
#include "strings.h"

#include "encoder/format/format.h"
#include "encoder/format/lock_texts.h"

#include "encoder/base/arena.h"
#include "encoder/base/futex.h"
#include "encoder/base/hash.h"

#include <string.h>

static const char *const reasons[GT_REASONS_END] = {
    [GT_REASON_NONE] = "",
    [GT_REASON_SYNC] = "sync",
    [GT_REASON_COND] = "sync.(*Cond).Wait",
    [GT_REASON_SLEEP] = "sleep",
    [GT_REASON_YIELD] = "runtime.Gosched",
    [GT_REASON_NETWORK] = "network",
    [GT_REASON_PREEMPTED] = "preempted",
    [GT_REASON_GC] = "GC",
    [GT_REASON_UNSEEN] = GT_UNSEEN_TEXT,
    [GT_LOG_HELD_BY] = "held by",
    [GT_LOG_WAITS_FOR] = "waits for",
    [GT_LOG_WAKES] = GT_WAKES_TEXT,
    [GT_LOG_WAKES_ALL] = GT_WAKES_ALL_TEXT,
    [GT_REASON_YIELDS] = GT_YIELDS_TEXT,
    [GT_LOG_WAITS_AGAIN] = GT_WAITS_AGAIN_TEXT,
};

static struct {
    struct gt_lock lock;
    struct gt_string *reason[GT_REASONS_END];
    uint32_t last_id;
    struct gt_arena arena; /* of reasons */
} table = {.last_id = GT_REASONS_END - 1};

static struct gt_string *fill(struct gt_string *s, uint32_t id, const char *text, size_t len)
{
    if (!s)
        return NULL;
    s->hash = gt_hash_bytes(text, len);
    s->id = id;
    s->len = (uint32_t)len;
    memcpy(s->text, text, len);
    return s;
}

static struct gt_string *insert_locked(struct gt_era *era, uint32_t id, const char *text,
                                       size_t len, bool of_lock)
{
    struct gt_string *s = gt_era_alloc(era, sizeof *s + len);
    if (!fill(s, id, text, len))
        return NULL;
    table.last_id = id > table.last_id ? id : table.last_id;
    struct gt_string **bucket = &era->strings[s->hash % GT_ERA_STRINGS], *last = era->last_string;
    s->era = era->number;
    s->of_lock = of_lock;
    s->next_in_bucket = *bucket;
    /* In this order: a string that is found stands in the list, even if a fork has come between. */
    __atomic_store_n(last ? &last->next : &era->first_string, s, __ATOMIC_RELEASE);
    __atomic_store_n(&era->last_string, s, __ATOMIC_RELEASE);
    __atomic_store_n(bucket, s, __ATOMIC_RELEASE);
    return s;
}

static bool is(const struct gt_string *s, const char *text, size_t len, uint64_t hash, bool of_lock)
{
    return s->hash == hash && s->len == len && s->of_lock == of_lock &&
           memcmp(s->text, text, len) == 0;
}

/* Makes all reasons that are missing: a fork may have interrupted this. */
static void seed_locked(void)
{
    for (uint32_t r = 0; r < GT_REASONS_END; r++) {
        if (table.reason[r])
            continue;
        size_t len = strlen(reasons[r]);
        struct gt_string *s = gt_arena_alloc(&table.arena, sizeof *s + len);
        __atomic_store_n(&table.reason[r], fill(s, r, reasons[r], len), __ATOMIC_RELEASE);
    }
}

static struct gt_string *intern_locked(const char *text, size_t len, bool of_lock)
{
    struct gt_era *era = gt_era_now();
    uint64_t hash = gt_hash_bytes(text, len);
    seed_locked();
    struct gt_string *s = era->strings[hash % GT_ERA_STRINGS];
    while (s && !is(s, text, len, hash, of_lock))
        s = s->next_in_bucket;
    for (int r = 0; !s && r < GT_REASONS_END; r++) {
        if (table.reason[r] && is(table.reason[r], text, len, hash, of_lock))
            s = table.reason[r];
    }
    if (s || (of_lock && !gt_era_may_grow(era))) /* a program may have any number of locks */
        return s;
    return insert_locked(era, table.last_id + 1, text, len, of_lock);
}

static struct gt_string *intern(const char *text, size_t len, bool of_lock)
{
    if (!gt_lock_within(&table.lock, GT_RANK_STRINGS, GT_HOOK_PATIENCE_NS))
        return NULL;
    struct gt_string *s = intern_locked(text, len, of_lock);
    gt_unlock(&table.lock);
    return s;
}

struct gt_string *gt_strings_intern(const char *text)
{
    return intern(text, strnlen(text, GT_STRING_MAX), false);
}

struct gt_string *gt_strings_intern_lock(const void *key, size_t size)
{
    return intern(key, size, true);
}

struct gt_string *gt_strings_adopt(const struct gt_string *its)
{
    gt_lock(&table.lock, GT_RANK_STRINGS);
    struct gt_string *s = insert_locked(gt_era_now(), its->id, its->text, its->len, its->of_lock);
    for (int i = 0; s && i < 2; i++)
        s->used[i] = its->used[i];
    gt_unlock(&table.lock);
    return s;
}

void gt_strings_adopt_id(uint32_t id)
{
    gt_lock(&table.lock, GT_RANK_STRINGS);
    table.last_id = id > table.last_id ? id : table.last_id;
    gt_unlock(&table.lock);
}

struct gt_string *gt_string_renewed(struct gt_string *s)
{
    return !s || !s->era || s->era == gt_era_now()->number ? s
                                                           : intern(s->text, s->len, s->of_lock);
}

/* Drain side ---------------------------------------------------------------------------------- */

/*
 * The newest entry now. each_of's fn may wait for a file: it must not do so with the lock, which a
 * thread that names itself wants. Entries stay, and links up to this one are final.
 */
static const struct gt_string *newest(const struct gt_era *era)
{
    gt_lock(&table.lock, GT_RANK_STRINGS);
    seed_locked();
    const struct gt_string *s = era->last_string;
    gt_unlock(&table.lock);
    return s;
}

/* Entries up to `last`: those used in gen; or, for gen 0, those whose `written` is mark. */
static void each_of(const struct gt_era *era, const struct gt_string *last, uint32_t gen,
                    uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    struct gt_string *s = last ? era->first_string : NULL;
    for (; s; s = s == last ? NULL : s->next) {
        if (gen ? atomic_load_explicit(&s->used[gen & 1], memory_order_relaxed) == gen
                : s->written == mark)
            fn(arg, s);
    }
}

static void each(uint32_t gen, uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    struct gt_era *era = gt_era_now();
    const struct gt_string *last = newest(era); /* seeds the reasons, too */
    for (int r = GT_REASON_NONE + 1; r < GT_REASONS_END; r++) {
        if (table.reason[r] && (gen || table.reason[r]->written == mark))
            fn(arg, table.reason[r]);
    }
    each_of(era, last, gen, mark, fn, arg);
    while ((era = era->older)) {
        if (!gen || !era->used_up)
            each_of(era, newest(era), gen, mark, fn, arg);
    }
}

void gt_strings_each(uint32_t gen, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    each(gen, 0, fn, arg);
}

void gt_strings_each_written(uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    each(0, mark, fn, arg);
}

void gt_strings_after_fork(void)
{
    atomic_store(&table.lock.word, 0);
}

void gt_strings_catch_up(void)
{
    for (struct gt_era *era = gt_era_now(); era; era = era->older) {
        for (int i = 0; i < GT_ERA_STRINGS; i++) {
            for (struct gt_string *s = era->strings[i]; s; s = s->next_in_bucket) {
                s->written = 0;
                table.last_id = s->id > table.last_id ? s->id : table.last_id;
            }
        }
    }
}
