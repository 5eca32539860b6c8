/* See held.h. */
#include "held.h"

#include "texts.h"
#include "writer.h"

#include "encoder/base/hash.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"

#include <string.h>

/* Threads ------------------------------------------------------------------------------------ */

/*
 * Threads by their kernel ids. Only the thread that has claimed a place writes there; any thread
 * reads. If `who` is equal before and after, all that was read belongs to one thread, under one
 * name.
 */
enum { PLACES = 1 << 14, PROBES = 8 };
enum { TID_BITS = 22 /* PID_MAX_LIMIT of Linux */, TAG_BITS = 28 };
#define TAG ((UINT64_C(1) << TAG_BITS) - 1)
#define BUSY UINT64_MAX

/* 0: free. BUSY: being written. Else goroutine, process and thread in one number. */
static _Atomic uint64_t who[PLACES] GT_SPARSE;

static struct {
    _Atomic uint64_t routine, name[2];
} more[PLACES] GT_SPARSE;

/* Places of another process are left from a parent. Numbers repeat after 64 forks in a row. */
static uint32_t process = 1;

static uint64_t tag_of(uint32_t tid)
{
    return ((uint64_t)process << TID_BITS & TAG) | tid;
}

/* Finds a place that has this tag or, for the tag 0, is free. NULL: there is none near. */
static _Atomic uint64_t *find(uint32_t tid, uint64_t tag)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *at = &who[(tid + i) % PLACES];
        uint64_t is = atomic_load_explicit(at, memory_order_acquire);
        bool free = !is || ((is ^ tag_of(0)) & TAG) >> TID_BITS;
        if (is != BUSY && (tag ? (is & TAG) == tag : free))
            return at;
    }
    return NULL;
}

/* Claims a place that the caller may write to: its own, or a free one. */
static _Atomic uint64_t *claim(uint32_t tid)
{
    for (;;) {
        _Atomic uint64_t *at = find(tid, tag_of(tid));
        at = at ? at : find(tid, 0);
        uint64_t is = at ? atomic_load(at) : BUSY;
        if (!at || (is != BUSY && atomic_compare_exchange_strong(at, &is, BUSY)))
            return at;
    }
}

void gt_held_begin(struct gt_writer *w)
{
    uint64_t name[2] = {0};
    const struct gt_stack *routine = __atomic_load_n(&w->g.routine, __ATOMIC_RELAXED);
    const struct gt_string *label = w->label;
    _Atomic uint64_t *at = claim(w->m);
    if (!at)
        return;
    if (label)
        memcpy(name, label->text, label->len < sizeof name ? label->len : sizeof name);
    size_t i = (size_t)(at - who);
    atomic_thread_fence(memory_order_release); /* pairs with read_place's */
    atomic_store_explicit(&more[i].routine, routine ? routine->pcs[0] : 0, memory_order_relaxed);
    atomic_store_explicit(&more[i].name[0], name[0], memory_order_relaxed);
    atomic_store_explicit(&more[i].name[1], name[1], memory_order_relaxed);
    atomic_store_explicit(at, w->g.id << TAG_BITS | tag_of(w->m), memory_order_release);
}

void gt_held_end(const struct gt_writer *w)
{
    _Atomic uint64_t *at = find(w->m, tag_of(w->m));
    if (at)
        atomic_store_explicit(at, 0, memory_order_release);
}

void gt_held_after_fork(void)
{
    process++;
}

static bool read_place(const _Atomic uint64_t *at, uint32_t tid, struct gt_held_key *key)
{
    uint64_t is = atomic_load_explicit(at, memory_order_acquire);
    size_t i = (size_t)(at - who);
    key->g = is >> TAG_BITS;
    key->routine = atomic_load_explicit(&more[i].routine, memory_order_relaxed);
    key->name[0] = atomic_load_explicit(&more[i].name[0], memory_order_relaxed);
    key->name[1] = atomic_load_explicit(&more[i].name[1], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return (is & TAG) == tag_of(tid) && is != BUSY &&
           atomic_load_explicit(at, memory_order_relaxed) == is;
}

uint64_t gt_held_g(uint32_t tid)
{
    const _Atomic uint64_t *at = tid ? find(tid, tag_of(tid)) : NULL;
    uint64_t is = at ? atomic_load_explicit(at, memory_order_relaxed) : 0;
    return at && is != BUSY && (is & TAG) == tag_of(tid) ? is >> TAG_BITS : 0;
}

/* Strings ------------------------------------------------------------------------------------ */

static struct gt_held_key key_of(const struct gt_lock_in_use *lock)
{
    struct gt_held_key key, plain = {.lock = (uintptr_t)lock->at,
                                     .holder = lock->holder,
                                     .shared = lock->shared,
                                     .epoch = lock->epoch};
    if (lock->holder == GT_HOLDER_UNKNOWN || lock->holder >= GT_HOLDER_READERS)
        return plain;
    const _Atomic uint64_t *at = find(lock->holder, tag_of(lock->holder));
    key = plain;
    return at && read_place(at, lock->holder, &key) ? key : plain;
}

static struct gt_held_recent *recent(struct gt_writer *w, const struct gt_held_key *key)
{
    uint64_t hash = (key->lock ^ key->g << 32) * GT_HASH_ODD;
    return &w->held[hash >> 61];
}
_Static_assert(GT_HELD_RECENT == 1 << (64 - 61), "places");

static struct gt_string *string_of(struct gt_writer *w, const struct gt_held_key *key)
{
    struct gt_held_recent *r = recent(w, key);
    uint32_t era = gt_era_now()->number;
    if (r->era == era && memcmp(&r->key, key, sizeof *key) == 0)
        return r->string;
    struct gt_string *s = gt_strings_intern_lock(key, sizeof *key);
    if (s)
        *r = (struct gt_held_recent){.key = *key, .string = s, .era = s->era};
    return s;
}

struct gt_string *gt_held_string(struct gt_writer *w, const struct gt_lock_in_use *lock)
{
    struct gt_held_key key = key_of(lock);
    return string_of(w, &key);
}

struct gt_string *gt_held_hold(struct gt_writer *w, const struct gt_lock_in_use *lock,
                               uint64_t address)
{
    struct gt_held_key key = key_of(lock);
    key.routine = address;
    return string_of(w, &key);
}

/* Texts --------------------------------------------------------------------------------------- */

static const struct gt_held_texts none, *texts = &none;

void gt_held_init(const struct gt_held_texts *of_process)
{
    texts = of_process;
}

static void (*put_text_at_end)(uint64_t id, const char *text, uint32_t len);

static void tell_at_end(const char *text, uint32_t len)
{
    put_text_at_end(gt_texts_new_id(), text, len);
}

void gt_held_tell_end(void (*put)(uint64_t id, const char *text, uint32_t len))
{
    put_text_at_end = put;
    if (texts->at_end)
        texts->at_end(tell_at_end);
}

static void put_function(struct gt_strbuf *t, const char *before, const struct gt_held_key *key)
{
    const char *name =
        key->routine && texts->function ? texts->function(key->routine, key->epoch) : NULL;
    if (!name)
        return;
    gt_strbuf_add(t, before);
    gt_strbuf_add(t, name);
}

/* "G7 committer, " */
static void put_holder(struct gt_strbuf *t, const struct gt_held_key *key)
{
    char name[sizeof key->name + 1] = "";
    memcpy(name, key->name, sizeof key->name);
    gt_strbuf_add(t, key->g ? "G" : "thread ");
    gt_strbuf_decimal(t, key->g ? key->g : key->holder);
    if (*name) {
        gt_strbuf_add(t, " ");
        gt_strbuf_add_item(t, name, strlen(name));
    } else {
        put_function(t, " ", key);
    }
    gt_strbuf_add(t, ", ");
}

static uint32_t put_text(const struct gt_held_key *key, const char **text)
{
    static char buf[GT_STRING_MAX] GT_SPARSE;
    struct gt_strbuf t = gt_strbuf_start(buf, sizeof buf);
    if (key->holder == GT_HOLDER_SELF)
        gt_strbuf_add(&t, "held ");
    else if (key->holder == GT_HOLDER_READERS)
        gt_strbuf_add(&t, "readers, ");
    else if (key->holder && key->holder < GT_HOLDER_READERS)
        put_holder(&t, key);
    gt_strbuf_add(&t, texts->lock ? texts->lock(key->lock, key->epoch, key->shared) : "?");
    if (key->holder == GT_HOLDER_SELF)
        put_function(&t, ", taken in ", key);
    *text = buf;
    return (uint32_t)(t.pos - buf);
}

uint32_t gt_held_text(const struct gt_string *s, const char **text)
{
    struct gt_held_key key;
    *text = s->text;
    if (!s->of_lock)
        return s->len;
    memcpy(&key, s->text, sizeof key);
    return put_text(&key, text);
}

enum gt_reason gt_held_category(const struct gt_string *s)
{
    uint32_t holder;
    memcpy(&holder, s->text + offsetof(struct gt_held_key, holder), sizeof holder);
    switch (holder) {
    case GT_HOLDER_UNKNOWN: return GT_LOG_WAITS_FOR;
    case GT_HOLDER_KEPT: return GT_LOG_WAITS_AGAIN;
    case GT_HOLDER_WAKER: return GT_LOG_WAKES;
    case GT_HOLDER_WAKER_OF_ALL: return GT_LOG_WAKES_ALL;
    default: return GT_LOG_HELD_BY;
    }
}
