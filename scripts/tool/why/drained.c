/* See drained.h. */
#include "drained.h"

#include "encoder/read/need.h"

#include <stdlib.h>

enum { PIECES_LEAST = 4 }; /* of each thread: of fewer, as many may be the part of each */

struct look {
    const struct gt_graph *graph;
    const struct gt_survey *survey;
    uint64_t *ns; /* by spot: calls and sleeps of the pool's threads there */
    uint32_t spot;
};

/* What one thread did in the call that the pool is in longest. */
struct pieces {
    uint64_t n, last, longest; /* last: the end of its last visit; longest: from one to the next */
};

static struct pieces look_at(struct look *l, uint32_t thread)
{
    struct pieces p = {0};
    GT_EACH_STEP_IN(s, l->graph, thread, l->survey->from, l->survey->to) {
        if (!gt_survey_works(s) || s->kind == GT_RUNNING) /* which a wait for a CPU may cut */
            continue;
        l->ns[s->spot] += s->to - s->from;
        if (s->spot != l->spot)
            continue;
        uint64_t ns = p.n++ ? s->to - p.last : s->to - s->from;
        p.longest = ns > p.longest ? ns : p.longest;
        p.last = s->to;
    }
    return p;
}

static uint32_t longest_spot(const struct look *l)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < l->graph->spots; i++)
        found = l->ns[i] > l->ns[found] ? i : found;
    return found;
}

/*
 * Threads that each had a part of the work, and were done with one piece more or less, would end a
 * piece apart. Those of one queue end within a piece, whatever number they did.
 */
struct gt_drained gt_drained_find(const struct gt_graph *graph, const struct gt_survey *survey,
                                  uint32_t pool)
{
    struct look l = {.graph = graph, .survey = survey, .spot = GT_NOBODY};
    const struct gt_pool *its = &survey->pool[pool];
    struct gt_drained d = {.least = UINT64_MAX};
    uint64_t first = UINT64_MAX, last = 0, longest = 0;
    bool stopped = false;
    l.ns = gt_need(calloc(graph->spots + 1, sizeof *l.ns));
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (survey->pool_of[i] == pool)
            look_at(&l, i);
    }
    l.spot = longest_spot(&l);
    uint64_t there = l.ns[l.spot];
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (survey->pool_of[i] != pool)
            continue;
        struct pieces p = look_at(&l, i);
        d.least = p.n < d.least ? p.n : d.least;
        d.most = p.n > d.most ? p.n : d.most;
        first = p.last < first ? p.last : first;
        last = p.last > last ? p.last : last;
        longest = p.longest > longest ? p.longest : longest;
        stopped |= graph->lane[i].stopped;
    }
    free(l.ns);
    bool unequal = d.most > d.least + 1 ? last - first <= longest
                                        : d.most > d.least && (last - first) * 2 <= longest;
    bool most = there * 2 >= its->free_ns + its->held_ns;
    return unequal && most && d.least >= PIECES_LEAST && !stopped ? d : (struct gt_drained){0};
}
