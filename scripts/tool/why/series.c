/* See series.h. */
#include "series.h"

#include "joins.h"

/*
 * When the creator went on after it waited for the end of that thread; or when the thread ended, if
 * the creator came later.
 */
static uint64_t waited_until(struct gt_series *s, struct gt_cursor *c, uint32_t thread)
{
    const struct gt_lane *lane = &c->graph->lane[thread];
    uint64_t until = 0;
    for (const struct gt_lane_step *step = gt_cursor_from(c, lane->begin);
         step && step->from <= lane->until; step = gt_cursor_next(c)) {
        if (step->by != thread || !gt_joins_is_join(c->graph, c->thread, step))
            continue;
        until = step->to;
        if (step->to - step->from > s->wait.to - s->wait.from)
            s->wait = *step;
    }
    s->waits += until > 0;
    return until ? until : lane->until;
}

/* Adds the thread's life. */
static void add_life(struct gt_series *s, const struct gt_graph *graph, uint32_t thread)
{
    GT_CURSOR(c, graph, thread);
    uint64_t ns = 0;
    for (const struct gt_lane_step *step = gt_cursor_from(&c, 0); step; step = gt_cursor_next(&c)) {
        ns += step->kind == GT_SCHED ? 0 : step->to - step->from;
        s->computes += step->kind == GT_RUNNING ? step->to - step->from : 0;
    }
    s->longest = ns > s->longest ? ns : s->longest;
    s->threads++;
}

/* The pool's threads are numbered in the order in which they began. */
struct gt_series gt_series_find(const struct gt_graph *graph, const struct gt_survey *survey,
                                uint32_t pool)
{
    struct gt_series s = {.maker = GT_NOBODY};
    GT_CURSOR(c, graph, 0);
    uint64_t until = 0; /* the creator went on after the thread before */
    bool in_turn = true;
    for (uint32_t i = survey->pool[pool].first; i < graph->lanes && in_turn; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        if (survey->pool_of[i] != pool || !lane->steps)
            continue;
        uint32_t maker = lane->thread->maker ? lane->thread->maker->number : GT_NOBODY;
        c.thread = s.maker = s.threads ? s.maker : maker;
        in_turn = maker != GT_NOBODY && maker == s.maker && lane->thread->ended &&
                  lane->begin >= until && lane->begin >= survey->from && lane->until <= survey->to;
        until = in_turn ? waited_until(&s, &c, i) : until;
        add_life(&s, graph, i);
    }
    return in_turn && s.waits * 4 >= s.threads * 3 ? s : (struct gt_series){0};
}
