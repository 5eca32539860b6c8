/* See history.h. */
#include "history.h"

#include "need.h"

enum { KEPT = 256 };

void gt_history_add(struct gt_history *h, const struct gt_past *past)
{
    if (past->from >= past->to)
        return;
    if (!h->past)
        h->past = gt_need(calloc(KEPT, sizeof *h->past));
    h->past[h->n++ % KEPT] = *past;
}

uint64_t gt_history_until(const struct gt_history *h, uint64_t least)
{
    uint64_t until = h->n ? h->past[(h->n - 1) % KEPT].to : 0;
    return until > least ? until : least;
}

uint64_t gt_history_between(const struct gt_history *h, uint64_t from, uint64_t to, gt_past_fn *fn,
                            void *arg)
{
    uint64_t sum = 0, kept = h->n < KEPT ? h->n : KEPT;
    for (uint64_t i = h->n; i > h->n - kept; i--) {
        struct gt_past part = h->past[(i - 1) % KEPT];
        if (part.to <= from)
            break;
        part.from = part.from > from ? part.from : from;
        part.to = part.to < to ? part.to : to;
        if (part.from >= part.to)
            continue;
        sum += part.to - part.from;
        fn(arg, &part);
    }
    return sum;
}
