/* The outer structure of v2 files: batches, and generations made of them. */
#pragma once

#include "bytes.h"

#include "encoder/format/format.h"

struct gt_batch {
    enum gt_event_type kind; /* its first event's type; GT_EV_EVENT_BATCH: events of a thread */
    uint64_t gen, thread, ts;
    struct gt_bytes data;
    size_t size; /* with its header */
};

/* Reads the next batch; false: there is none, or it is incomplete. */
bool gt_batch_next(struct gt_bytes *bytes, struct gt_batch *batch);

/* Reads the next string of a batch of kind GT_EV_STRINGS; false: there are no more. */
bool gt_batch_next_string(struct gt_bytes *data, uint64_t *id, struct gt_bytes *text);

/* How many arguments follow the time in a thread's event; -1: the type is unknown. */
static inline int gt_event_args_of(uint8_t type)
{
    enum { FIRST_EXPERIMENTAL = 128 };
    /* Spans of the heap, its objects, goroutines' stacks: each existing, allocated, freed. */
    static const int8_t experimental[] = {3, 3, 1, 2, 2, 1, 2, 2, 1};
    if (type < GT_EVENTS_END)
        return gt_event_args[type];
    size_t i = (size_t)type - FIRST_EXPERIMENTAL;
    return type >= FIRST_EXPERIMENTAL && i < sizeof experimental ? experimental[i] : -1;
}

/* Where the generation at the beginning of bytes ends; NULL: it is incomplete. */
const uint8_t *gt_generation_end(struct gt_bytes bytes, const struct gt_format *format);
