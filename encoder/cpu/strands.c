/* See strands.h. */
#include "strands.h"

#include "encoder/base/varint.h"
#include "encoder/thread/texts.h"

static size_t each_packed(const struct gt_buf *buf, void (*fn)(const struct gt_strand *strand))
{
    const uint8_t *pos = buf->data, *end = buf->data + buf->used;
    size_t n = 0;
    for (; pos < end; n++) {
        struct gt_strand s = {0};
        pos++; /* EventBatch */
        gt_varint_get(&pos, end);
        s.m = (uint32_t)gt_varint_get(&pos, end);
        s.ts = gt_varint_get(&pos, end);
        uint64_t size = gt_varint_get(&pos, end);
        s.pos = pos;
        s.end = pos += size;
        if (fn)
            fn(&s);
    }
    return n;
}

size_t gt_strands_each(const struct gt_buf *packed, const struct gt_buf *plain,
                       void (*fn)(const struct gt_strand *strand))
{
    size_t n = 0;
    for (; packed; packed = packed->next)
        n += each_packed(packed, fn);
    for (; plain; plain = plain->next) {
        struct gt_strand s = {plain->data, plain->data + plain->used, plain->ts, plain->m};
        if (gt_texts_in(plain))
            continue;
        n++;
        if (fn)
            fn(&s);
    }
    return n;
}

enum gt_event_type gt_strand_next(struct gt_strand *s, uint64_t arg[GT_EVENT_ARGS_MAX])
{
    uint8_t type = *s->pos++;
    int args = type < GT_EVENTS_END ? gt_event_args[type] : -1;
    s->ts += gt_varint_get(&s->pos, s->end);
    for (int i = 0; i < args; i++)
        arg[i] = gt_varint_get(&s->pos, s->end);
    if (args < 0)
        s->pos = s->end;
    return type;
}
