/* See early_holds.h. */
#include "early_holds.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

/* The end of a wait for a token: the token went from one thread to another. */
struct passing {
    uint64_t since, at; /* the wait's begin and end */
    uint32_t lock, from, to;
};

struct look {
    struct gt_graph *graph;
    uint64_t *known; /* by lock: until when the first recorded hold has begun */
    struct passing *passing;
    size_t n;
};

static void find_known(struct look *l)
{
    for (size_t i = 0; i < l->graph->locks; i++)
        l->known[i] = UINT64_MAX;
    for (size_t i = 0; i < l->graph->lanes; i++) {
        const struct gt_lane *lane = &l->graph->lane[i];
        for (size_t k = 0; k < lane->holds; k++) {
            const struct gt_lock_hold *h = &lane->hold[k];
            uint64_t from = h->from + 2 * gt_hold_slack(h);
            l->known[h->lock] = from < l->known[h->lock] ? from : l->known[h->lock];
        }
    }
}

static void find_passings(struct look *l, uint32_t thread)
{
    GT_EACH_STEP(s, l->graph, thread) {
        if (!l->graph->spot[s->spot].token || !s->ended || s->by == GT_NOBODY ||
            !gt_graph_is_lock_wait(l->graph, s) || s->from >= l->known[s->lock])
            continue;
        *GT_ADD(l->passing, l->n) = (struct passing){s->from, s->to, s->lock, s->by, thread};
    }
}

GT_ORDER(by_lock, struct passing, GT_UP(lock) ?: GT_UP(at))

/*
 * The thread that gave the token away held it since the token was passed to it. A thread that took
 * the token without a wait held it at least since the other thread began to wait. last: the token's
 * passing before, or NULL.
 */
static void add_hold(struct look *l, const struct passing *p, const struct passing *last)
{
    uint64_t from = p->since;
    if (last && (last->to == p->from || last->at > from))
        from = last->at;
    if (from < p->at && p->at <= l->known[p->lock])
        gt_graph_add_hold(l->graph, p->from,
                          (struct gt_lock_hold){.from = from, .to = p->at, .lock = p->lock}, "");
}

/*
 * Whether the token that was passed before is the same one: the thread that has it now got it then,
 * or was faster than that thread. Otherwise another semaphore was at that address.
 */
static bool is_next(const struct passing *last, const struct passing *p)
{
    return last->lock == p->lock && (p->from == last->to || p->from == last->from);
}

void gt_early_holds_find(struct gt_graph *graph)
{
    struct look l = {.graph = graph, .known = gt_need(calloc(graph->locks + 1, sizeof *l.known))};
    find_known(&l);
    for (uint32_t i = 0; i < graph->lanes; i++)
        find_passings(&l, i);
    if (l.n)
        qsort(l.passing, l.n, sizeof *l.passing, by_lock);
    bool told = true; /* all of the lock's later ones are of the same token */
    for (size_t i = l.n; i-- > 0;) {
        const struct passing *p = &l.passing[i];
        const struct passing *last = i && is_next(p - 1, p) ? p - 1 : NULL;
        if (told)
            add_hold(&l, p, last);
        told = i && (p[-1].lock != p->lock || (told && last));
    }
    gt_graph_sort_holds(graph);
    free(l.passing);
    free(l.known);
}
