/*
 * Collects all calls that read or write pipes, sockets and eventfds from the logs
 * (encoder/format/channel.h) of one trace or several. waking.c learns from them which thread ended
 * which wait (streams.h).
 */
#pragma once

#include "streams.h"

#include "encoder/read/threads.h"

/* The state while one trace is read. The caller sets `in` and `later`; all else starts as zero. */
struct gt_channels {
    uint32_t in;    /* index of the trace */
    uint64_t later; /* ns from the common beginning to the trace's */
    struct gt_memo calls;
};

/* Whether the trace has any such logs. */
bool gt_channels_has(const struct gt_trace *trace);

/* To be called with each span and event of the trace. */
void gt_channels_span(struct gt_channels *c, const struct gt_span *span);
void gt_channels_event(struct gt_channels *c, const struct gt_happening *h,
                       const struct gt_thread_state *t);
void gt_channels_end(struct gt_channels *c);

/* After all traces: calls fn with each wait whose waker is certain. */
void gt_channels_pair(gt_channel_fn *fn, void *arg);
