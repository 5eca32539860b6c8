/* See order.h. */
#include "order.h"

#include "need.h"

#include <stdlib.h>

struct gt_source *gt_sources_get(struct gt_sources *all, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&all->by_id, id + 1));
    if (*slot)
        return (void *)(uintptr_t)*slot;
    struct gt_source *s = gt_need(calloc(1, sizeof *s));
    s->id = id;
    s->stream.thread = GT_NO_THREAD;
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        all->source = gt_need(realloc(all->source, all->room * sizeof *all->source));
    }
    all->source[all->n++] = s;
    *slot = (uintptr_t)s;
    return s;
}

void gt_source_append(struct gt_source *s, struct gt_piece piece)
{
    struct gt_piece *p = gt_need(malloc(sizeof *p));
    *p = piece;
    p->next = NULL;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
}

bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s)
{
    struct gt_piece *p = s->first;
    if (!p)
        return false;
    uint64_t before = trace->done;
    trace->done += (uint64_t)(p->end - p->start);
    if (trace->progress)
        trace->progress(trace, before, trace->done);
    s->bytes = (struct gt_bytes){p->start, p->end, false};
    s->ts = p->ts;
    s->seq = p->seq;
    s->first = p->next;
    free(p);
    return true;
}

/* A heap by key ------------------------------------------------------------------------------- */

struct heap {
    struct gt_source **at;
    size_t n;
};

static void swap(struct heap *h, size_t a, size_t b)
{
    struct gt_source *s = h->at[a];
    h->at[a] = h->at[b];
    h->at[b] = s;
}

static void sink(struct heap *h, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->at[child + 1]->key < h->at[child]->key)
            child++;
        if (h->at[i]->key <= h->at[child]->key)
            return;
        swap(h, i, child);
    }
}

static void push(struct heap *h, struct gt_source *s)
{
    size_t i = h->n++;
    h->at[i] = s;
    for (; i && h->at[i]->key < h->at[(i - 1) / 2]->key; i = (i - 1) / 2)
        swap(h, i, (i - 1) / 2);
}

static struct gt_source *pop(struct heap *h)
{
    struct gt_source *s = h->at[0];
    h->at[0] = h->at[--h->n];
    sink(h, 0);
    return s;
}

/*
 * The earliest event is not possible: looks among the next ones for one that is, and brings it to
 * the top. Without any, the trace is wrong; the earliest is told all the same.
 */
static void find_possible(struct gt_trace *trace, struct heap *h,
                          const struct gt_audience *audience)
{
    size_t n = 0, all = h->n;
    struct gt_source *found = NULL, **waiting = gt_need(malloc(all * sizeof *waiting));
    while (h->n && !found) {
        struct gt_source *s = pop(h);
        if (audience->possible(audience->arg, &s->next))
            found = s;
        else
            waiting[n++] = s;
    }
    for (size_t i = 0; i < n; i++)
        push(h, waiting[i]);
    if (found) {
        found->key = h->at[0]->key; /* times do not go back */
        push(h, found);
        for (size_t i = 0; i < h->n; i++) { /* among equals it must be the first */
            if (h->at[i] == found)
                swap(h, 0, i);
        }
    } else {
        trace->odd++;
    }
    free(waiting);
}

void gt_order(struct gt_trace *trace, struct gt_sources *all, gt_next_fn *next,
              double (*to_ns)(void *arg, uint64_t ts), void *arg,
              const struct gt_audience *audience)
{
    struct heap h = {gt_need(malloc((all->n + 1) * sizeof *h.at)), 0};
    for (size_t i = 0; i < all->n; i++) {
        if (next(arg, all->source[i]))
            push(&h, all->source[i]);
    }
    while (h.n) {
        if (!audience->possible(audience->arg, &h.at[0]->next))
            find_possible(trace, &h, audience);
        struct gt_source *s = h.at[0];
        double ns = to_ns(arg, s->next.ts);
        if (ns > (double)trace->ns)
            trace->ns = (uint64_t)ns;
        audience->tell(audience->arg, &s->next, trace->ns);
        if (next(arg, s))
            sink(&h, 0);
        else
            pop(&h);
    }
    free(h.at);
}
