/* See running.h. */
#include "running.h"

#include "need.h"

#include <stdlib.h>

void gt_stretches_add(struct gt_stretches *s, uint64_t from, uint64_t to, const void *who)
{
    *GT_ADD(s->at, s->n) = (struct gt_stretch){from, to, who};
}

uint64_t gt_stretches_between(const struct gt_stretches *s, uint64_t from, uint64_t to,
                              gt_stretch_fn *fn, void *arg)
{
    uint64_t sum = 0;
    for (size_t i = s->n; i-- > 0;) {
        const struct gt_stretch *it = &s->at[i];
        uint64_t begin = it->from > from ? it->from : from;
        uint64_t end = it->to > to ? to : it->to;
        if (it->to <= from)
            break;
        if (begin >= end)
            continue;
        sum += end - begin;
        if (fn)
            fn(arg, it->who, end - begin);
    }
    return sum;
}

void gt_running_note(struct gt_running *r, uint64_t p, const void *who, uint64_t ns)
{
    uint64_t *slot = gt_need(gt_memo_at(&r->by_p, p + 1));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, sizeof(struct gt_stretches)));
    struct gt_stretches *s = (void *)(uintptr_t)*slot;
    struct gt_stretch *last =
        s->n && s->at[s->n - 1].to == GT_STRETCH_OPEN ? &s->at[s->n - 1] : NULL;
    if (last && last->who == who)
        return;
    if (last)
        last->to = ns;
    if (who)
        gt_stretches_add(s, ns, GT_STRETCH_OPEN, who);
}

const struct gt_stretches *gt_running_on(const struct gt_running *r, uint64_t p)
{
    return (const void *)(uintptr_t)gt_memo_find(&r->by_p, p + 1);
}
