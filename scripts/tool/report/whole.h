/*
 * Whole waits. For the program all sleeps of one call are one wait (gt_sleeps_on). The trace has a
 * span for each sleep. The length of a wait is that of its sleeps together. The time between two
 * of them, in which the thread could run, is a span of GT_SCHED.
 */
#pragma once

#include "encoder/read/threads.h"

/* The last wait of a thread. Zero-initialised. */
struct gt_whole {
    struct gt_span span; /* its last sleep; but `from` of its first one, and `ns` of all of them */
    size_t counted;      /* the caller's, kept while the wait goes on; at first 0 */
};

/* Zero-initialised. */
struct gt_wholes {
    struct gt_whole *of; /* by the thread's number */
    size_t n;
};

/* The thread's last wait; valid until the next call. */
struct gt_whole *gt_whole_of(struct gt_wholes *wholes, const struct gt_thread_state *thread);

/* true: the sleep belongs to the wait, and is added. false: the sleep begins the thread's next. */
bool gt_whole_add(struct gt_whole *whole, const struct gt_span *sleep);
