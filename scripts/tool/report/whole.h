/*
 * Whole waits. A thread that is woken for a mutex may find it taken again, and sleeps on. For the
 * program that is one wait, the call of pthread_mutex_lock. The trace has a span for each sleep
 * (gt_span.began). The length of such a wait is that of its sleeps together. The time between two
 * of them, in which the thread could run, is a span of GT_SCHED.
 */
#pragma once

#include "encoder/read/threads.h"

/* The last wait of a thread. */
struct gt_whole {
    struct gt_span span; /* its last sleep; but `from` of its first one, and `ns` of all of them */
    bool known;          /* false: the thread has not waited yet */
    size_t counted;      /* the caller's, kept while the wait goes on; at first 0 */
};

/* Zero-initialised. */
struct gt_wholes {
    struct gt_whole *of; /* by the thread's number */
    size_t n;
};

/* The thread's last wait; valid until the next call. */
struct gt_whole *gt_whole_of(struct gt_wholes *wholes, const struct gt_thread_state *thread);

/* Whether the sleep is a further one of that wait. */
static inline bool gt_whole_goes_on(const struct gt_whole *whole, const struct gt_span *sleep)
{
    return whole->known && sleep->began < sleep->from && sleep->began == whole->span.began;
}

/* Adds the sleep to the wait that it belongs to; otherwise it begins the next one. */
void gt_whole_add(struct gt_whole *whole, const struct gt_span *sleep);
