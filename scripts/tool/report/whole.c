/* See whole.h. */
#include "whole.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

struct gt_whole *gt_whole_of(struct gt_wholes *wholes, const struct gt_thread_state *thread)
{
    if (thread->number >= wholes->n) {
        size_t n = 2 * (size_t)thread->number + 16;
        wholes->of = gt_need(realloc(wholes->of, n * sizeof *wholes->of));
        memset(wholes->of + wholes->n, 0, (n - wholes->n) * sizeof *wholes->of);
        wholes->n = n;
    }
    return &wholes->of[thread->number];
}

void gt_whole_add(struct gt_whole *whole, const struct gt_span *sleep)
{
    const struct gt_span before = whole->span;
    if (!gt_whole_goes_on(whole, sleep)) {
        *whole = (struct gt_whole){*sleep, true, 0};
        return;
    }
    whole->span = *sleep;
    whole->span.from = before.from;
    whole->span.ns += before.ns;
}
