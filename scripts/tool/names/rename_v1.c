/*
 * See naming.h: writes a v1 trace with new stacks. New strings come right before their stack. The
 * new file is not made of pages, which matter only while a recording writes.
 */
#include "naming.h"

#include "encoder/base/varint.h"
#include "encoder/read/need.h"
#include "encoder/read/v1_records.h"
#include "encoder/file/v1/pages.h"

#include <string.h>

struct writer {
    struct gt_naming *naming;
    FILE *out;
    bool stays_later;
};

static void learn_string(struct writer *w, struct gt_bytes args)
{
    uint64_t id = gt_get_varint(&args);
    struct gt_bytes text = gt_get_part(&args, gt_get_varint(&args));
    gt_naming_string(w->naming, id, &text);
}

/* The id of an interned text, which is written if it is new; "" is 0. */
static uint64_t id_of(struct writer *w, const char *text)
{
    uint8_t head[1 + 2 * GT_VARINT_MAX], *p = head;
    uint64_t *slot = gt_need(gt_memo_at(&w->naming->ids, (uintptr_t)text));
    if (!*text)
        return 0;
    if (!*slot) {
        *slot = ++w->naming->last_id;
        *p++ = GT_V1_STRING;
        p = gt_varint_put(gt_varint_put(p, *slot), strlen(text));
        fwrite(head, 1, (size_t)(p - head), w->out);
        fputs(text, w->out);
    }
    return *slot;
}

/* v1 has the mark as a number in a stack with the id 0. */
bool gt_naming_v1_says_later(const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    return record->type == GT_V1_STACK && !gt_get_varint(&args) && gt_get_varint(&args) &&
           gt_get_varint(&args) == GT_V1_LATER;
}

static void learn_pcs(struct writer *w, struct gt_bytes args)
{
    struct gt_where frame;
    if (!gt_get_varint(&args))
        return; /* id 0: not a stack, but numbers about other things */
    for (uint64_t n = gt_get_varint(&args); n-- && gt_naming_frame(w->naming, &args, &frame);)
        gt_naming_pc(w->naming, frame.pc);
}

static uint8_t *put_frame(struct writer *w, uint8_t *p, const struct gt_where *frame)
{
    p = gt_varint_put(p, frame->pc);
    p = gt_varint_put(p, id_of(w, frame->func));
    p = gt_varint_put(p, id_of(w, frame->file));
    return gt_varint_put(p, frame->line);
}

/* A stack that is too long for a record loses its outermost frames, as in file/v1/tables.c. */
static void rename_stack(struct writer *w, struct gt_bytes args)
{
    enum { FRAME_MAX = 4 * GT_VARINT_MAX, HEAD_MAX = 1 + 3 * GT_VARINT_MAX };
    uint8_t body[GT_V1_RECORD_MAX], counts[2 * GT_VARINT_MAX], head[HEAD_MAX], *q = body;
    const uint8_t *last = body + sizeof body - FRAME_MAX - HEAD_MAX;
    struct gt_where frame, named[GT_FRAMES_MAX];
    uint32_t all = 0, count = 0;
    uint64_t id = gt_get_varint(&args);
    for (uint64_t n = gt_get_varint(&args); n-- && gt_naming_frame(w->naming, &args, &frame);)
        all = gt_naming_put(w->naming, &frame, all, named);
    while (count < all && q < last)
        q = put_frame(w, q, &named[count++]);
    size_t counted = (size_t)(gt_varint_put(gt_varint_put(counts, id), count) - counts);
    head[0] = GT_V1_STACK | 3u << 6;
    uint8_t *p = gt_varint_put(head + 1, counted + (size_t)(q - body));
    fwrite(head, 1, (size_t)(p - head), w->out);
    fwrite(counts, 1, counted, w->out);
    fwrite(body, 1, (size_t)(q - body), w->out);
}

/* Renames a string, or the message at the end of a log; false: the text stays as it is. */
static bool rename_text(struct writer *w, const struct gt_v1_record *record, const uint8_t *start)
{
    uint8_t size[GT_VARINT_MAX];
    struct gt_bytes text = record->value, args = record->args;
    if (record->type == GT_V1_STRING) {
        gt_get_varint(&args);
        text = gt_get_part(&args, gt_get_varint(&args));
    }
    const char *fresh = text.p ? gt_naming_text(w->naming, &text) : NULL;
    if (!fresh)
        return false;
    size_t before = (size_t)(gt_varint_put(size, gt_bytes_left(&text)) - size);
    fwrite(start, 1, (size_t)(text.p - start) - before, w->out);
    fwrite(size, 1, (size_t)(gt_varint_put(size, strlen(fresh)) - size), w->out);
    fputs(fresh, w->out);
    return true;
}

static void rename_record(struct writer *w, const struct gt_v1_record *record, const uint8_t *start)
{
    struct gt_bytes args = record->args;
    if (record->type == GT_V1_STACK && gt_get_varint(&args))
        rename_stack(w, record->args);
    else if ((w->stays_later || !gt_naming_v1_says_later(record)) && !rename_text(w, record, start))
        fwrite(start, 1, record->size, w->out);
}

void gt_rename_v1(struct gt_naming *naming, const struct gt_trace *trace, FILE *out)
{
    struct writer w = {.naming = naming, .out = out};
    const struct gt_bytes all = {trace->base + GT_HEADER_BYTES, trace->base + trace->size, false};
    struct gt_v1_record record;
    for (struct gt_bytes b = all; gt_v1_record_next(&b, trace->format, &record);) {
        if (record.type == GT_V1_STRING)
            learn_string(&w, record.args);
    }
    for (struct gt_bytes b = all; gt_v1_record_next(&b, trace->format, &record);) {
        naming->was_later |= gt_naming_v1_says_later(&record);
        if (record.type == GT_V1_STACK)
            learn_pcs(&w, record.args);
    }
    w.stays_later = gt_naming_stays_later(naming);
    const uint8_t *whole = all.p;
    fwrite(trace->base, 1, GT_HEADER_BYTES, out);
    for (struct gt_bytes b = all; gt_v1_record_next(&b, trace->format, &record);) {
        rename_record(&w, &record, b.p - record.size);
        whole = b.p;
    }
    fwrite(whole, 1, (size_t)(all.end - whole), out); /* a record that is cut off */
}
