/* See connected.h. */
#include "connected.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>

enum {
    SOON_PART = 8,       /* of the wait: from the end of a connect to that of the accept, */
    SOON_NS = 10000000,  /* and no longer than that */
    LEAST_WAITS = 4,     /* fewer tell nothing; */
    HITS_PERCENT = 50,   /* at least so many end when a connect did (short ones have no event); */
    CHANCE_PERCENT = 13, /* at most so many would by chance, were they half as long */
};

struct call {
    uint64_t from, to;
    uint32_t thread, spot;
    bool used;   /* a connect has ended a wait, or the wait by a connect: */
    uint64_t at; /* then, and */
    uint32_t by; /* this thread did */
};

struct calls {
    struct call *at;
    size_t n;
};

GT_ORDER(by_end, struct call, GT_UP(to))

GT_ORDER(by_thread, struct call, GT_UP(thread))

static void add(struct calls *to, const struct gt_lane_step *s, uint32_t thread)
{
    *GT_ADD(to->at, to->n) = (struct call){s->from, s->to, thread, s->spot, false, 0, GT_NOBODY};
}

/* Finds the connects, and the waits for connections that nobody is known to have ended. */
static void find_calls(const struct gt_graph *graph, struct calls *connects, struct calls *waits)
{
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_EACH_STEP(s, graph, i) {
            const char *call = gt_graph_call_of(graph, s);
            if (gt_is_connect(call))
                add(connects, s, i);
            else if (gt_is_accept(call) && s->kind == GT_NETWORK && s->ended && s->by == GT_NOBODY)
                add(waits, s, i);
        }
    }
}

/* The first connect that may have ended the wait at `at`; or NULL. */
static struct call *connect_at(const struct calls *connects, const struct call *wait, uint64_t at)
{
    uint64_t part = (wait->to - wait->from) / SOON_PART, soon = part < SOON_NS ? part : SOON_NS;
    size_t i = 0, end = connects->n;
    while (i < end) {
        size_t middle = i + (end - i) / 2;
        if (connects->at[middle].to + soon < at)
            i = middle + 1;
        else
            end = middle;
    }
    for (; i < connects->n && connects->at[i].from <= at; i++) {
        struct call *its = &connects->at[i];
        if (!its->used && its->thread != wait->thread && its->from >= wait->from)
            return its;
    }
    return NULL;
}

/* Whether waits at that place end when threads connect, more often than by chance. */
static bool is_of_connects(const struct calls *connects, const struct calls *waits, uint32_t spot)
{
    uint64_t n = 0, hits = 0, chance = 0;
    for (size_t i = 0; i < waits->n; i++) {
        const struct call *w = &waits->at[i];
        if (w->spot != spot)
            continue;
        n++;
        hits += connect_at(connects, w, w->to) != NULL;
        chance += connect_at(connects, w, w->from + (w->to - w->from) / 2) != NULL;
    }
    return n >= LEAST_WAITS && hits * 100 >= n * HITS_PERCENT && chance * 100 <= n * CHANCE_PERCENT;
}

/* Which waits the connects ended, each of them one, in the order of time. */
static void match(struct gt_graph *graph, struct calls *connects, struct calls *waits)
{
    enum { NOT_KNOWN, NO, YES };
    uint8_t *told = gt_need(calloc(graph->spots + 1, sizeof *told));
    for (size_t i = 0; i < waits->n; i++) {
        struct call *w = &waits->at[i];
        if (told[w->spot] == NOT_KNOWN)
            told[w->spot] = is_of_connects(connects, waits, w->spot) ? YES : NO;
        struct call *by = told[w->spot] == YES ? connect_at(connects, w, w->to) : NULL;
        if (!by)
            continue;
        by->used = w->used = true;
        w->at = by->to < w->to ? by->to : w->to;
        w->by = by->thread;
        gt_graph_note_guess(graph, w->spot, w->by);
        graph->inferred++;
    }
    free(told);
}

/* Stores the result in the lanes. No cursor is in use any more. */
static void tell(struct gt_graph *graph, const struct calls *waits)
{
    for (size_t i = 0, next; i < waits->n; i = next) {
        struct gt_handed *handed = gt_need(malloc((waits->n - i) * sizeof *handed));
        uint32_t thread = waits->at[i].thread;
        size_t n = 0;
        for (next = i; next < waits->n && waits->at[next].thread == thread; next++) {
            const struct call *w = &waits->at[next];
            if (w->used)
                handed[n++] = (struct gt_handed){w->at, w->by, GT_NOBODY, .guessed = true};
        }
        gt_lane_hand(&graph->lane[thread], handed, n);
    }
}

void gt_connected_find(struct gt_graph *graph)
{
    struct calls connects = {0}, waits = {0};
    find_calls(graph, &connects, &waits);
    if (connects.n && waits.n) {
        qsort(connects.at, connects.n, sizeof *connects.at, by_end);
        qsort(waits.at, waits.n, sizeof *waits.at, by_end);
        match(graph, &connects, &waits);
        qsort(waits.at, waits.n, sizeof *waits.at, by_thread);
        tell(graph, &waits);
    }
    free(connects.at);
    free(waits.at);
}
