/*
 * A wait that a thread makes by sleeping again and again, until what it waits for is there: libc++
 * waits so at a std::barrier. For reports all these sleeps are one wait.
 */
#pragma once

#include "threads.h"

/* The wait, then the time without a CPU, then the time on the CPU. */
struct gt_polled {
    struct gt_span at[3];
    size_t n;
};

/*
 * Takes a span that is over. sleeps: it is a sleep of such a wait. true: the span is kept, as the
 * wait may go on. false: it is to be told, after those that were kept, which this function tells.
 */
bool gt_polled_keeps(struct gt_threads *all, struct gt_thread_state *t, const struct gt_span *span,
                     bool sleeps);

/* Tells the spans that were kept: the thread does something else now. */
void gt_polled_end(struct gt_threads *all, struct gt_thread_state *t);
