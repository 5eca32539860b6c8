/*
 * Finds the wakers of waits for pipes, sockets and eventfds, from all calls that read or wrote
 * there, and the bytes they moved. Reports only wakers that are certain.
 *
 * A reader waits in a call that reads, or in a poll that found one descriptor ready, if the poll's
 * thread reads that descriptor next. The writer is the waker under three conditions.
 *
 * - The stream was empty when the wait began: readers had taken out as much as writers had put in.
 *   Unknown bytes (those there when recording began, those of calls without a log) shift that sum.
 *   So the stream counts as empty where the sum is at its lowest.
 * - One thread alone wrote during the wait, and no other thread read or waited to read.
 * - The write was just before the end of the wait.
 *
 * A writer waits in a call that writes to a pipe without room for all the bytes. The reader is the
 * waker, by its first read that left enough room, under three conditions.
 *
 * - The writer had to wait: its bytes and those certainly in the pipe exceed the pipe's size.
 * - No other thread wrote, and one thread alone read.
 * - The pipe was empty again later, which shows that the sums are right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A woken thread runs within this time. If a wait ends later, its waker is not certain. */
enum { GT_AT_ONCE_NS = 20000000 };

/* A thread of one of several traces. */
struct gt_channel_thread {
    uint32_t in; /* index of the trace */
    uint64_t g;
};

/* A call that moved bytes. Times are ns of the merged trace, but for `own`. */
struct gt_channel_call {
    const char *name; /* of the stream; interned */
    struct gt_channel_thread thread;
    uint64_t from, to;
    uint64_t own;          /* when it began, ns of its own trace */
    uint64_t since, until; /* its wait; until 0: no wait that a thread can have ended */
    uint64_t bytes;
    uint32_t room; /* size of the pipe that is written to; 0: not known */
    bool writes;
};

/* Takes a wait's waker, whose call began at ns of the waker's trace, and the woken thread. */
typedef void gt_channel_fn(void *arg, struct gt_channel_thread waker, uint64_t ns,
                           struct gt_channel_thread woken);

/* Calls fn for each wait whose waker is certain. Takes up to 48 more bytes of memory a call. */
void gt_streams_pair(const struct gt_channel_call *call, size_t n, gt_channel_fn *fn, void *arg);
