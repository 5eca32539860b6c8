/* See naming.h: writes a v2 trace with new tables, generation by generation. */
#include "naming.h"

#include "encoder/base/varint.h"
#include "encoder/read/batches.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    struct gt_naming *naming;
    FILE *out;
    struct table *strings; /* the new strings */
    bool stays_later;
    struct gt_batch like; /* new batches have its generation, thread and time */
};

/* A batch being filled. */
struct table {
    uint8_t data[GT_BATCH_MAX], *pos;
    enum gt_event_type type;
};

/* Batches ------------------------------------------------------------------------------------ */

static void begin(struct table *t, enum gt_event_type type)
{
    t->type = type;
    t->pos = t->data;
    *t->pos++ = (uint8_t)type;
}

static void end(struct writer *w, struct table *t)
{
    uint8_t head[1 + 4 * GT_VARINT_MAX], *p = head;
    size_t size = (size_t)(t->pos - t->data);
    if (size > 1) {
        *p++ = GT_EV_EVENT_BATCH;
        p = gt_varint_put(p, w->like.gen);
        p = gt_varint_put(p, w->like.thread);
        p = gt_varint_put(p, w->like.ts);
        p = gt_varint_put(p, size);
        fwrite(head, 1, (size_t)(p - head), w->out);
        fwrite(t->data, 1, size, w->out);
    }
    begin(t, t->type);
}

static void room(struct writer *w, struct table *t, size_t size)
{
    if ((size_t)(t->data + sizeof t->data - t->pos) < size)
        end(w, t);
}

/* Strings ------------------------------------------------------------------------------------ */

static void put_string(struct writer *w, uint64_t id, const void *text, size_t n)
{
    room(w, w->strings, 1 + 2 * GT_VARINT_MAX + n);
    *w->strings->pos++ = GT_EV_STRING;
    w->strings->pos = gt_varint_put(gt_varint_put(w->strings->pos, id), n);
    memcpy(w->strings->pos, text, n);
    w->strings->pos += n;
}

/* The id of an interned text in this generation; a new text is written. */
static uint64_t id_of(struct writer *w, const char *text)
{
    uint64_t *slot = gt_need(gt_memo_at(&w->naming->ids, (uintptr_t)text));
    if (!*slot) {
        size_t n = strnlen(text, GT_STRING_MAX); /* a text of the trace may have had the id 0 */
        *slot = ++w->naming->last_id;
        put_string(w, *slot, text, n);
    }
    return *slot;
}

bool gt_naming_v2_says_later(const struct gt_bytes *text)
{
    return gt_bytes_left(text) == sizeof GT_LATER - 1 &&
           memcmp(text->p, GT_LATER, sizeof GT_LATER - 1) == 0;
}

static void learn_strings(struct writer *w, struct gt_bytes data)
{
    uint64_t id;
    struct gt_bytes text;
    gt_get_byte(&data);
    while (gt_batch_next_string(&data, &id, &text)) {
        gt_naming_string(w->naming, id, &text);
        w->naming->was_later |= gt_naming_v2_says_later(&text);
    }
}

/* Writes the strings, with names in texts that lack them. */
static void rename_strings(struct writer *w, struct gt_bytes data)
{
    uint64_t id;
    struct gt_bytes text;
    gt_get_byte(&data);
    while (gt_batch_next_string(&data, &id, &text)) {
        const char *fresh = gt_naming_text(w->naming, &text);
        if (fresh)
            put_string(w, id, fresh, strlen(fresh));
        else if (!gt_naming_v2_says_later(&text) || w->stays_later)
            put_string(w, id, text.p, gt_bytes_left(&text));
    }
    end(w, w->strings);
}

/* Ids mean something only within a generation. */
static void forget_strings(struct writer *w)
{
    gt_memo_free(&w->naming->texts);
    gt_memo_free(&w->naming->ids);
    w->naming->last_id = 0;
}

/* Stacks ------------------------------------------------------------------------------------- */

/* Reads one stack; false: damaged. */
static bool read_stack(struct writer *w, struct gt_bytes *data, uint64_t *id, uint64_t *n,
                       struct gt_where frames[GT_FRAMES_MAX])
{
    if (gt_get_byte(data) != GT_EV_STACK)
        return false;
    *id = gt_get_varint(data);
    *n = gt_get_varint(data);
    for (uint64_t i = 0; i < *n && i < GT_FRAMES_MAX; i++)
        gt_naming_frame(w->naming, data, &frames[i]);
    return !data->bad && *n <= GT_FRAMES_MAX;
}

static void rename_stacks(struct writer *w, struct gt_bytes data)
{
    struct gt_where frames[GT_FRAMES_MAX], named[GT_FRAMES_MAX];
    struct table *t = gt_need(malloc(sizeof *t));
    uint64_t id, n;
    begin(t, GT_EV_STACKS);
    for (gt_get_byte(&data); gt_bytes_left(&data) && read_stack(w, &data, &id, &n, frames);) {
        uint32_t count = 0;
        for (uint64_t i = 0; i < n; i++)
            count = gt_naming_put(w->naming, &frames[i], count, named);
        room(w, t, 1 + (2 + 4 * (size_t)count) * GT_VARINT_MAX);
        *t->pos++ = GT_EV_STACK;
        t->pos = gt_varint_put(gt_varint_put(t->pos, id), count);
        for (uint32_t i = 0; i < count; i++) {
            t->pos = gt_varint_put(t->pos, named[i].pc);
            t->pos = gt_varint_put(t->pos, id_of(w, named[i].func));
            t->pos = gt_varint_put(t->pos, id_of(w, named[i].file));
            t->pos = gt_varint_put(t->pos, named[i].line);
        }
    }
    end(w, t);
    end(w, w->strings);
    free(t);
}

static void learn_pcs(struct writer *w, struct gt_bytes data)
{
    struct gt_where frames[GT_FRAMES_MAX];
    uint64_t id, n;
    for (gt_get_byte(&data); gt_bytes_left(&data) && read_stack(w, &data, &id, &n, frames);) {
        for (uint64_t i = 0; i < n; i++)
            gt_naming_pc(w->naming, frames[i].pc);
    }
}

/* The file ----------------------------------------------------------------------------------- */

static void each_batch(struct writer *w, struct gt_bytes bytes, enum gt_event_type kind,
                       void (*fn)(struct writer *w, struct gt_bytes data))
{
    struct gt_batch b;
    while (gt_batch_next(&bytes, &b)) {
        if (b.kind == kind)
            fn(w, b.data);
    }
}

static void rename_generation(struct writer *w, struct gt_bytes bytes)
{
    each_batch(w, bytes, GT_EV_STRINGS, learn_strings);
    while (gt_batch_next(&bytes, &w->like)) {
        if (w->like.kind == GT_EV_STACKS)
            rename_stacks(w, w->like.data);
        else if (w->like.kind == GT_EV_STRINGS && w->naming->was_later)
            rename_strings(w, w->like.data);
        else
            fwrite(bytes.p - w->like.size, 1, w->like.size, w->out);
    }
    forget_strings(w);
}

void gt_rename_v2(struct gt_naming *naming, const struct gt_trace *trace, FILE *out)
{
    struct writer w = {.naming = naming, .out = out};
    struct gt_bytes rest = {trace->base + GT_HEADER_BYTES, trace->base + trace->size, false};
    const uint8_t *end_of_generation;
    w.strings = gt_need(malloc(sizeof *w.strings));
    begin(w.strings, GT_EV_STRINGS);
    each_batch(&w, rest, GT_EV_STRINGS, learn_strings);
    each_batch(&w, rest, GT_EV_STACKS, learn_pcs);
    forget_strings(&w);
    w.stays_later = gt_naming_stays_later(naming);
    fwrite(trace->base, 1, GT_HEADER_BYTES, out);
    while ((end_of_generation = gt_generation_end(rest, trace->format))) {
        rename_generation(&w, (struct gt_bytes){rest.p, end_of_generation, false});
        rest.p = end_of_generation;
    }
    fwrite(rest.p, 1, gt_bytes_left(&rest), out); /* a generation that is cut off */
    free(w.strings);
}
