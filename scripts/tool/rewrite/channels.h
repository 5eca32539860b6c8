/*
 * All calls that read or write pipes, sockets and eventfds, from their logs (encoder/channel.h), of
 * one trace or several: for waking.c, which learns who ended which waits (streams.h).
 */
#ifndef GT_REWRITE_CHANNELS_H
#define GT_REWRITE_CHANNELS_H

#include "streams.h"

#include "encoder/read/threads.h"

/* A reading of one trace; zeros to begin with, but for `in`, which trace, and `later`. */
struct gt_channels {
    uint32_t in;
    uint64_t later; /* ns from the common beginning to its own */
    struct gt_memo calls;
};

/* Whether there is anything to be found. */
bool gt_channels_has(const struct gt_trace *trace);

/* Each of its spans and events. */
void gt_channels_span(struct gt_channels *c, const struct gt_span *span);
void gt_channels_event(struct gt_channels *c, const struct gt_happening *h,
                       const struct gt_thread_state *t);
void gt_channels_end(struct gt_channels *c);

/* After all of them: calls fn with each wait of which that is certain. */
void gt_channels_pair(gt_channel_fn *fn, void *arg);

#endif
