/* See slots.h. */
#include "slots.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_WAITS = 10,
    PAIRED_PERCENT = 75,    /* of posts: by a thread that waited and got a slot before */
    LEAST_OUTSIDE_PART = 20 /* most inside per outside: else workers pass work on */
};

/* A thread at the semaphore under examination. */
struct visitor {
    uint64_t got, gave; /* when it got and gave a slot; 0: not known */
    bool has;
};

struct moment {
    uint64_t at;
    int by;
};

struct look {
    const struct gt_program *program;
    struct visitor *visitor; /* by thread */
    struct moment *moment;   /* begins and ends of times with a slot */
    uint64_t waits, paired, inside, outside;
    bool one_place;  /* all waits are in one function */
    bool semaphores; /* all waits are in sem_wait or the like */
};

static bool is_semaphore(const struct gt_program *p, const struct gt_edge *e)
{
    return strncmp(gt_leaf_of(p->sections->graph->spot[e->spot].stack), "sem_", 4) == 0;
}

static const char *function_of(const struct gt_program *p, const struct gt_edge *e)
{
    const struct gt_where *site = gt_site_of(p->sections->graph->spot[e->spot].stack);
    return site ? site->func : "";
}

/*
 * Notes a post and the wait that it ended. If the poster had not waited, it had a slot at least
 * since the waiter came, as all slots were taken then.
 */
static void note(struct look *l, const struct gt_edge *e)
{
    struct visitor *giver = &l->visitor[e->by], *taker = &l->visitor[e->waiter];
    uint64_t since = giver->has ? giver->got : e->since;
    l->moment[2 * l->waits] = (struct moment){since, 1};
    l->moment[2 * l->waits + 1] = (struct moment){e->at, -1};
    l->waits++;
    l->paired += giver->has;
    l->inside += giver->has ? e->at - since : 0;
    l->outside += taker->gave && e->since > taker->gave ? e->since - taker->gave : 0;
    *giver = (struct visitor){.gave = e->at};
    *taker = (struct visitor){.got = e->at, .has = true};
}

GT_ORDER(by_time, struct moment, GT_UP(at) ?: x->by - y->by)

/* The number of slots that were taken for most of the time. */
static uint32_t usual_number(struct look *l)
{
    uint64_t *ns = gt_need(calloc(l->waits + 1, sizeof *ns));
    size_t n = 2 * l->waits;
    int64_t now = 0;
    uint32_t usual = 0;
    qsort(l->moment, n, sizeof *l->moment, by_time);
    for (size_t i = 0; i + 1 < n; i++) {
        now += l->moment[i].by;
        if (now > 0)
            ns[now] += l->moment[i + 1].at - l->moment[i].at;
    }
    for (uint32_t i = 1; i <= l->waits; i++)
        usual = ns[i] > ns[usual] ? i : usual;
    free(ns);
    return usual;
}

GT_ORDER_POINTERS(by_lock, struct gt_edge, GT_UP(lock) ?: GT_UP(at))

/* The number of slots of one semaphore, from all waits for it, sorted by time; or 0. */
static uint32_t slots_of(struct look *l, const struct gt_edge **edge, size_t n)
{
    const struct gt_program *p = l->program;
    l->waits = l->paired = l->inside = l->outside = 0;
    l->one_place = l->semaphores = true;
    for (size_t i = 0; i < n; i++)
        l->visitor[edge[i]->by] = l->visitor[edge[i]->waiter] = (struct visitor){0};
    for (size_t i = 0; i < n; i++) {
        note(l, edge[i]);
        l->one_place &= function_of(p, edge[i]) == function_of(p, edge[0]);
        l->semaphores &= is_semaphore(p, edge[i]);
    }
    bool fits = l->one_place && l->paired * 100 >= l->waits * PAIRED_PERCENT &&
                l->outside * LEAST_OUTSIDE_PART >= l->inside;
    uint32_t number = fits ? usual_number(l) : 0;
    return number > 1 || l->semaphores ? number : 0; /* 1 with a variable may be a turn */
}

uint32_t *gt_slots_find(const struct gt_program *p)
{
    const struct gt_graph *graph = p->sections->graph;
    const struct gt_edge **edge = gt_need(malloc((p->edges + 1) * sizeof(void *)));
    uint32_t *slots = gt_need(calloc(graph->locks + 1, sizeof *slots));
    size_t n = 0;
    for (size_t i = 0; i < p->edges; i++) {
        if (p->edge[i].lock != GT_NOBODY)
            edge[n++] = &p->edge[i];
    }
    if (n)
        qsort(edge, n, sizeof(void *), by_lock);
    struct look l = {.program = p,
                     .visitor = gt_need(calloc(p->roles + 1, sizeof *l.visitor)),
                     .moment = gt_need(malloc((2 * n + 1) * sizeof *l.moment))};
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && edge[end]->lock == edge[i]->lock;)
            end++;
        uint64_t known = gt_graph_slots(graph, edge[i]->lock);
        if (known)
            slots[edge[i]->lock] = (uint32_t)known;
        else if (end - i >= LEAST_WAITS)
            slots[edge[i]->lock] = slots_of(&l, edge + i, end - i);
    }
    free(l.moment);
    free(l.visitor);
    free(edge);
    return slots;
}
