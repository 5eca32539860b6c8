/* The outer structure of v2 files: batches, and generations made of them. */
#ifndef GT_BATCHES_H
#define GT_BATCHES_H

#include "bytes.h"

#include "encoder/format.h"

struct gt_batch {
    enum gt_event_type kind; /* of what it begins with; GT_EV_EVENT_BATCH: events of a thread */
    uint64_t gen, thread, ts;
    struct gt_bytes data;
    size_t size; /* with its header */
};

/* The next batch; false: there is none, or not all of it. */
bool gt_batch_next(struct gt_bytes *bytes, struct gt_batch *batch);

/* The strings of a batch of kind GT_EV_STRINGS, one after the other; false: there are no more. */
bool gt_batch_next_string(struct gt_bytes *data, uint64_t *id, struct gt_bytes *text);

/* How many arguments follow the time of an event of a thread; -1: there is none of that type. */
static inline int gt_event_args_of(uint8_t type)
{
    enum { FIRST_EXPERIMENTAL = 128 };
    /* Spans of the heap, its objects, goroutines' stacks: there already, allocated, freed. */
    static const int8_t experimental[] = {3, 3, 1, 2, 2, 1, 2, 2, 1};
    if (type < GT_EVENTS_END)
        return gt_event_args[type];
    size_t i = (size_t)type - FIRST_EXPERIMENTAL;
    return type >= FIRST_EXPERIMENTAL && i < sizeof experimental ? experimental[i] : -1;
}

/* Where the generation at the beginning of bytes ends; NULL: it is not whole. */
const uint8_t *gt_generation_end(struct gt_bytes bytes, const struct gt_format *format);

#endif
