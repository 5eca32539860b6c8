/* See whole.h. */
#include "whole.h"

#include "encoder/read/need.h"

struct gt_whole *gt_whole_of(struct gt_wholes *wholes, const struct gt_thread_state *thread)
{
    wholes->of = gt_need_zeros(wholes->of, &wholes->n, thread->number, sizeof *wholes->of);
    return &wholes->of[thread->number];
}

bool gt_whole_add(struct gt_whole *whole, const struct gt_span *sleep)
{
    const struct gt_span before = whole->span;
    if (!gt_sleeps_on(&before, sleep)) {
        *whole = (struct gt_whole){*sleep, 0};
        return false;
    }
    whole->span = *sleep;
    whole->span.from = before.from;
    whole->span.ns += before.ns;
    return true;
}
