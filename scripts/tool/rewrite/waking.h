/*
 * When merging: finds the wakers of waits at locks that processes share. In the waiter's trace such
 * a wait has no waker; the waker, in another trace, left a log (encoder/thread/held.h). All traces
 * are searched for these logs before they are merged. Only wakers that are certain are kept.
 *
 * - Of a mutex or read-write lock: the last thread to wake a waiter before the wait ended. No other
 *   thread can have held the lock then, if all its users are traced.
 * - Of all else: the waker of the only wake-up there during the wait, if the waiter was alone there
 *   or all waiters were woken.
 *
 * The waker's log must be just before the end of the wait: a longer wait was ended by a thread that
 * is not traced. For pipes, sockets and eventfds see streams.h.
 */
#pragma once

#include "aligning.h"

/* A waker's log, or the begin of its call, and the wait that it ended. */
struct gt_woken {
    uint64_t ns, by; /* in the waker's trace: ns since its beginning; the goroutine */
    struct gt_everybody *const *whose;
    uint64_t g; /* the woken goroutine, in trace `whose` */
};

/* The wakers' events of one trace, by time. */
struct gt_wakings {
    struct gt_woken *at;
    size_t n;
    size_t next; /* the first one not written yet, for gt_join_wakes */
};

/* One of the traces that are merged. */
struct gt_waking_in {
    const struct gt_aligned *aligned;
    struct gt_everybody **all; /* set before the trace's events are rewritten */
    struct gt_wakings wakings; /* result */
};

/* Sets the wakings of all traces. Takes 32 bytes a begin or end of a wait, and a log. */
void gt_waking_find(struct gt_waking_in *in, size_t n);
