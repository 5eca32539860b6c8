/* See strings.h. */
#include "strings.h"

#include "arena.h"
#include "format.h"
#include "futex.h"

#include <string.h>

#define BUCKETS 4096u

static const char *const reasons[GT_REASONS_END] = {
    [GT_REASON_SYNC] = "sync",       [GT_REASON_COND] = "sync.(*Cond).Wait",
    [GT_REASON_SLEEP] = "sleep",     [GT_REASON_YIELD] = "runtime.Gosched",
    [GT_REASON_NETWORK] = "network", [GT_REASON_PREEMPTED] = "preempted",
    [GT_REASON_GC] = "GC",
};

static struct {
    struct gt_lock lock;
    struct gt_string *bucket[BUCKETS];
    struct gt_string *first, *last;
    uint32_t last_id;
    struct gt_arena arena;
} table;

static uint64_t hash_text(const char *s, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
    return h;
}

static struct gt_string *insert_locked(const char *text, size_t len, uint64_t hash)
{
    struct gt_string *s = gt_arena_alloc(&table.arena, sizeof *s + len);
    if (!s)
        return NULL;
    s->hash = hash;
    s->id = ++table.last_id;
    s->len = (uint32_t)len;
    memcpy(s->text, text, len);
    s->next_in_bucket = table.bucket[hash % BUCKETS];
    table.bucket[hash % BUCKETS] = s;
    if (table.last)
        table.last->next = s;
    else
        table.first = s;
    table.last = s;
    return s;
}

static struct gt_string *intern_locked(const char *text)
{
    size_t len = strnlen(text, GT_STRING_MAX);
    uint64_t hash = hash_text(text, len);
    struct gt_string *s = table.bucket[hash % BUCKETS];
    while (s && !(s->hash == hash && s->len == len && memcmp(s->text, text, len) == 0))
        s = s->next_in_bucket;
    return s ? s : insert_locked(text, len, hash);
}

/* The reasons come first so that their ids are their enum values. */
static void seed_locked(void)
{
    for (int r = 1; r < GT_REASONS_END; r++)
        intern_locked(reasons[r]);
}

struct gt_string *gt_strings_intern(const char *text)
{
    if (!gt_lock_within(&table.lock, gt_hook_patience_ns()))
        return NULL;
    if (!table.first)
        seed_locked();
    struct gt_string *s = intern_locked(text);
    gt_unlock(&table.lock);
    return s;
}

/*
 * The newest entry now. fn may wait for a file: the lock, which a thread that names itself wants,
 * must not be held then. Entries stay, and up to this one their links do not change any more.
 */
static const struct gt_string *newest(void)
{
    gt_lock(&table.lock);
    if (!table.first)
        seed_locked();
    const struct gt_string *s = table.last;
    gt_unlock(&table.lock);
    return s;
}

void gt_strings_each(uint32_t gen, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    const struct gt_string *last = newest();
    for (struct gt_string *s = table.first; s; s = s == last ? NULL : s->next) {
        if (s->id < GT_REASONS_END ||
            atomic_load_explicit(&s->used[gen & 1], memory_order_relaxed) == gen)
            fn(arg, s);
    }
}

void gt_strings_each_written(uint32_t mark, void (*fn)(void *arg, struct gt_string *s), void *arg)
{
    const struct gt_string *last = newest();
    for (struct gt_string *s = table.first; s; s = s == last ? NULL : s->next) {
        if (s->written == mark)
            fn(arg, s);
    }
}

void gt_strings_after_fork(void)
{
    atomic_store(&table.lock.word, 0);
}
