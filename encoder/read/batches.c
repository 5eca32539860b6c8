/* See batches.h. */
#include "batches.h"

static enum gt_event_type kind_of(const struct gt_bytes *data)
{
    if (!gt_bytes_left(data))
        return GT_EV_EVENT_BATCH;
    switch (*data->p) {
    case GT_EV_STACKS:
    case GT_EV_STRINGS:
    case GT_EV_CPU_SAMPLES:
    case GT_EV_FREQUENCY:
    case GT_EV_SYNC: return *data->p;
    default: return GT_EV_EVENT_BATCH;
    }
}

bool gt_batch_next(struct gt_bytes *bytes, struct gt_batch *b)
{
    const uint8_t *start = bytes->p;
    if (!gt_bytes_left(bytes))
        return false;
    uint8_t type = gt_get_byte(bytes);
    *b = (struct gt_batch){.kind = type};
    if (type == GT_EV_END_OF_GENERATION) {
        b->size = 1;
        return true;
    }
    if (type == GT_EV_EXPERIMENTAL_BATCH)
        gt_get_byte(bytes); /* which one */
    else if (type != GT_EV_EVENT_BATCH)
        bytes->bad = true;
    b->gen = gt_get_varint(bytes);
    b->thread = gt_get_varint(bytes);
    b->ts = gt_get_varint(bytes);
    b->data = gt_get_part(bytes, gt_get_varint(bytes));
    b->size = (size_t)(bytes->p - start);
    if (type == GT_EV_EVENT_BATCH)
        b->kind = kind_of(&b->data);
    return !bytes->bad;
}

bool gt_batch_next_string(struct gt_bytes *data, uint64_t *id, struct gt_bytes *text)
{
    if (!gt_bytes_left(data) || gt_get_byte(data) != GT_EV_STRING)
        return false;
    *id = gt_get_varint(data);
    *text = gt_get_part(data, gt_get_varint(data));
    return !data->bad;
}

/*
 * Since Go 1.26 an event marks the end. Before, a generation ends where the next one begins or the
 * file ends. It is complete if it has its clock, which our writers put last.
 */
const uint8_t *gt_generation_end(struct gt_bytes bytes, const struct gt_format *format)
{
    const uint8_t *end = NULL;
    struct gt_batch b;
    uint64_t gen = 0;
    bool clock = false;
    while (gt_bytes_left(&bytes) && gt_batch_next(&bytes, &b)) {
        if (b.kind == GT_EV_END_OF_GENERATION)
            return clock ? bytes.p : NULL;
        if (gen && b.gen != gen)
            break;
        gen = b.gen;
        clock |= b.kind == GT_EV_FREQUENCY || b.kind == GT_EV_SYNC;
        end = bytes.p;
    }
    return clock && !format->end_marker ? end : NULL;
}
