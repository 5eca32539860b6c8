/*
 * Who ended waits for pipes, sockets and eventfds, from the logs of all calls about them
 * (encoder/channel.h), of one trace or several: for waking.c. A wait is of a call that reads, or of
 * a poll for which one thing was ready, if what its thread does next is to read that. Who wrote is
 * kept only where it is certain:
 *
 * - nothing was there when the wait began: as much had been taken out as put in, counted over all
 *   calls. What is not known (what was in there when recording began, calls that are not recorded)
 *   makes that sum another one, so it is taken for empty where the sum is as low as it ever is;
 * - one thread alone wrote during the wait, and nobody else read or waited to;
 * - and that was just before the wait was over.
 */
#ifndef GT_REWRITE_CHANNELS_H
#define GT_REWRITE_CHANNELS_H

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

/*
 * After all of them: calls fn with the thread that wrote, by a call that began ns after its trace,
 * and the one whose wait that ended. Takes 72 bytes for each call, and up to 32 more then.
 */
struct gt_channel_thread {
    uint32_t in;
    uint64_t g;
};
typedef void gt_channel_fn(void *arg, struct gt_channel_thread waker, uint64_t ns,
                           struct gt_channel_thread woken);
void gt_channels_pair(gt_channel_fn *fn, void *arg);

#endif
