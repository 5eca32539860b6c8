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

/* Where the generation at the beginning of bytes ends; NULL: it is not whole. */
const uint8_t *gt_generation_end(struct gt_bytes bytes, const struct gt_format *format);

#endif
