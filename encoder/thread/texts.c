/* See texts.h. */
#include "texts.h"

#include "writer.h"

#include "encoder/base/arena.h"
#include "encoder/base/hash.h"
#include "encoder/base/varint.h"

#include <string.h>

static _Atomic uint64_t last_id = GT_TEXT_FIRST - 1;

void gt_texts_begin(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts)
{
    buf->data[0] = GT_EV_STRINGS;
    buf->used = 1;
    gt_buffers_claim(buf, gen, m, ts);
}

uint32_t gt_texts_length(const char *text)
{
    enum { CONTINUATION = 0x80, MASK = 0xc0, MORE_MAX = 3 };
    size_t len = strnlen(text, GT_STRING_MAX + 1), cut = GT_STRING_MAX;
    if (len <= GT_STRING_MAX)
        return (uint32_t)len;
    while (GT_STRING_MAX - cut < MORE_MAX && (text[cut] & MASK) == CONTINUATION)
        cut--;
    return (text[cut] & MASK) == CONTINUATION ? GT_STRING_MAX : (uint32_t)cut;
}

/* So many texts share a place, the last used one first. */
enum { WAYS = 4 };

static uint32_t place_of(const char *text, uint32_t len)
{
    uint64_t hash = gt_hash_bytes(text, len);
    return (uint32_t)(hash ^ hash >> 32) % (GT_TEXTS_RECENT / WAYS) * WAYS;
}

static bool is(const struct gt_recent_text *t, const char *text, uint32_t len)
{
    return t->text && t->len == len && memcmp(t->text, text, len) == 0;
}

uint64_t gt_texts_new_id(void)
{
    return atomic_fetch_add(&last_id, 1) + 1;
}

void gt_texts_adopt_id(uint64_t id)
{
    if (id > atomic_load(&last_id))
        atomic_store(&last_id, id);
}

struct gt_recent_text gt_texts_append(struct gt_buf *buf, const char *text, uint32_t len)
{
    struct gt_recent_text t = {.len = len, .id = gt_texts_new_id()};
    uint8_t *p = buf->data + buf->used;
    *p++ = GT_EV_STRING;
    p = gt_varint_put(gt_varint_put(p, t.id), len);
    t.text = memcpy(p, text, len);
    /* release: as gt_put_end */
    __atomic_store_n(&buf->used, (uint32_t)(p + len - buf->data), __ATOMIC_RELEASE);
    return t;
}

uint64_t gt_texts_put(struct gt_writer *w, const char *text, uint32_t len)
{
    if (!len)
        return 0;
    struct gt_recent_text *these = &w->texts.recent[place_of(text, len)], found;
    uint32_t i = 0;
    while (i < WAYS - 1 && !is(&these[i], text, len))
        i++;
    found = is(&these[i], text, len) ? these[i] : gt_texts_append(w->texts.buf, text, len);
    memmove(these + 1, these, i * sizeof *these);
    these[0] = found;
    return found.id;
}

uint64_t gt_texts_put_again(struct gt_writer *w, uint64_t id, const char *text, uint32_t len)
{
    return gt_format->v1 ? id : gt_texts_put(w, text, len);
}

/* Drain side ---------------------------------------------------------------------------------- */

/* Ids grow with time: those of a generation lie close together. */
static struct {
    struct gt_vector memory; /* of struct gt_text_found */
    uint64_t first, n;
} by_id;

static struct gt_text_found *found(void)
{
    return by_id.memory.at;
}

void gt_texts_of(const struct gt_buf *buf, gt_text_fn *fn, void *arg)
{
    const uint8_t *p = buf->data + 1, *end = buf->data + buf->used;
    while (p < end) {
        p++;
        uint64_t id = gt_varint_get(&p, end), len = gt_varint_get(&p, end);
        fn(arg, id, (const char *)p, (uint32_t)len);
        p += len;
    }
}

static void each(const struct gt_buf *buf, gt_text_fn *fn)
{
    for (; buf; buf = buf->next) {
        if (gt_texts_in(buf))
            gt_texts_of(buf, fn, NULL);
    }
}

static void widen(void *unused, uint64_t id, const char *text, uint32_t len)
{
    (void)unused;
    (void)text;
    (void)len;
    uint64_t last = by_id.n ? by_id.first + by_id.n - 1 : id;
    by_id.first = by_id.n && by_id.first < id ? by_id.first : id;
    by_id.n = (last > id ? last : id) - by_id.first + 1;
}

static void set(void *unused, uint64_t id, const char *text, uint32_t len)
{
    (void)unused;
    found()[id - by_id.first] = (struct gt_text_found){text, len, false};
}

void gt_texts_index(const struct gt_buf *bufs)
{
    by_id.n = 0;
    gt_vector_empty(&by_id.memory);
    each(bufs, widen);
    /* In a damaged box ids may lie anywhere. n is 0 if they span all 2^64. */
    bool few = by_id.n && by_id.n < SIZE_MAX / sizeof *found();
    if (few && gt_vector_reserve(&by_id.memory, by_id.n * sizeof *found()))
        each(bufs, set);
}

struct gt_text_found *gt_texts_find(uint64_t id)
{
    struct gt_text_found *text =
        found() && id - by_id.first < by_id.n ? &found()[id - by_id.first] : NULL;
    return text && text->text ? text : NULL;
}
