/*
 * Who ended waits for pipes, sockets and eventfds, as far as it is certain: from all calls that
 * have read or written there, and how much.
 *
 * A wait is of a call that reads, or of a poll for which one thing was ready, if what its thread
 * does next is to read that. Who wrote ended it, if
 *
 * - nothing was there when the wait began: as much had been taken out as put in. What is not known
 *   (what was in there when recording began, calls that say nothing) makes that sum another one, so
 *   it is taken for empty where the sum is as low as it ever is;
 * - one thread alone wrote during the wait, and nobody else read or waited to;
 * - and that was just before the wait was over.
 *
 * And of a call that writes to a pipe, if there was no room for all of it. Who read ended it, if
 *
 * - it had to wait: with what was certainly there it would have been more than the pipe takes;
 * - nobody else wrote, and one thread alone read; its first read after which there was room;
 * - and the pipe was empty again later, so that the sums have been right.
 */
#ifndef GT_STREAMS_H
#define GT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread of one of several traces. */
struct gt_channel_thread {
    uint32_t in;
    uint64_t g;
};

/* A call that has moved bytes. Times are ns of what is put together, but for `own`. */
struct gt_channel_call {
    const char *name; /* of the stream; interned */
    struct gt_channel_thread thread;
    uint64_t from, to;
    uint64_t own;          /* when it began, ns of its own trace */
    uint64_t since, until; /* the wait for it; until 0: there was none that anybody can end */
    uint64_t bytes;
    uint32_t room; /* of a pipe that is written to; 0: not known */
    bool writes;
};

/* waker: did it by a call that began ns after its trace. */
typedef void gt_channel_fn(void *arg, struct gt_channel_thread waker, uint64_t ns,
                           struct gt_channel_thread woken);

/* Takes up to 48 bytes for each call, beside itself. */
void gt_streams_pair(const struct gt_channel_call *call, size_t n, gt_channel_fn *fn, void *arg);

#endif
