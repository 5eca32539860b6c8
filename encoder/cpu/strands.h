/*
 * A generation's events as writers left them, in strands: each is a batch of one thread. The
 * strands of a thread come in the order in which it wrote them.
 */
#pragma once

#include "encoder/thread/buffers.h"
#include "encoder/format/format.h"

/* The rest of a batch, still to be decoded. */
struct gt_strand {
    const uint8_t *pos, *end;
    uint64_t ts; /* of the last event decoded */
    uint32_t m;
};

/*
 * Calls fn, which may be NULL, for each strand and returns how many there are. Buffers of `packed`
 * hold whole batches with their headers, buffers of `plain` one batch each. Texts are left out.
 */
size_t gt_strands_each(const struct gt_buf *packed, const struct gt_buf *plain,
                       void (*fn)(const struct gt_strand *strand));

/*
 * Decodes the next event of a strand that is not at its end; s->ts becomes the event's time. If
 * the type is unknown, returns it and drops the rest of the strand.
 */
enum gt_event_type gt_strand_next(struct gt_strand *s, uint64_t arg[GT_EVENT_ARGS_MAX]);
