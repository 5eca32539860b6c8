/* See polled.h. */
#include "polled.h"

#include "encoder/read/need.h"

#include <stdlib.h>

/*
 * Whether the sleep goes on with the wait. A thread that waits anew polls for SPIN_NS before it
 * sleeps, and then sleeps for half of the time that it has waited, or for MOST_NS
 * (libcxx/include/__thread/timed_backoff_policy.h). Where it ran longer, it may have lost its CPU:
 * then the length of the sleep tells, unless that is so short that a timer's delay counts.
 */
static bool goes_on(const struct gt_polled *p, const struct gt_span *sleep)
{
    enum { SPIN_NS = 64000, LEAST_NS = 256000, MOST_NS = 8000000 };
    const struct gt_span *last = &p->at[p->n - 1];
    uint64_t ran = last->kind == GT_RUNNING ? last->ns : 0;
    uint64_t half = (sleep->from - p->at[0].from) / 2;
    half = half > MOST_NS ? MOST_NS : half < LEAST_NS ? LEAST_NS : half;
    return sleep->stack == p->at[0].stack && (ran < SPIN_NS || sleep->ns >= half);
}

bool gt_polled_keeps(struct gt_threads *all, struct gt_thread_state *t, const struct gt_span *span,
                     bool sleeps)
{
    struct gt_polled *p = t->polled;
    if (p && p->n && sleeps && goes_on(p, span)) {
        p->at[0].ns = span->from + span->ns - p->at[0].from;
        p->at[0].ended = span->ended;
        p->n = 1;
        t->count[span->kind]--;
        return true;
    }
    bool next = p && p->n && span->kind < p->at[p->n - 1].kind;
    if (next && (span->kind == GT_SCHED || span->kind == GT_RUNNING)) {
        p->at[p->n++] = *span;
        return true;
    }
    gt_polled_end(all, t);
    if (!sleeps)
        return false;
    p = t->polled = p ? p : gt_need(calloc(1, sizeof *p));
    p->at[0] = *span;
    p->n = 1;
    return true;
}

void gt_polled_end(struct gt_threads *all, struct gt_thread_state *t)
{
    size_t n = t->polled ? t->polled->n : 0;
    for (size_t i = 0; i < n; i++)
        all->span(all->arg, &t->polled->at[i]);
    if (n)
        t->polled->n = 0;
}
