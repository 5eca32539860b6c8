/* See starved.h. */
#include "starved.h"

#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>

static bool writes(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    static const char *const calls[] = {"pthread_rwlock_wrlock", "pthread_rwlock_timedwrlock",
                                        "pthread_rwlock_clockwrlock", NULL};
    return s->by != GT_NOBODY && s->waker && gt_graph_is_lock_wait(graph, s) &&
           gt_begins_with(gt_leaf_of(graph->spot[s->spot].stack), calls);
}

static bool is_on(const struct gt_callers *stack, const char *function)
{
    for (uint32_t i = 1; stack && i < stack->n; i++) {
        if (stack->frame[i].func == function)
            return true;
    }
    return false;
}

/*
 * How often the reader that let the writer in came back to the lock during the wait: from calls
 * outside of the function that releases the lock to calls in that function.
 */
static uint64_t rounds_in(const struct gt_graph *graph, const struct gt_lane_step *wait)
{
    const struct gt_where *site = gt_site_of(graph->stack[wait->waker]);
    uint64_t rounds = 0;
    bool outside = false;
    if (!site)
        return 0;
    GT_EACH_STEP_IN(s, graph, wait->by, wait->from, wait->to) {
        const struct gt_spot *spot = &graph->spot[s->spot];
        if (spot->runs || s->kind == GT_SCHED || !spot->stack)
            continue;
        bool inside = is_on(spot->stack, site->func);
        rounds += inside && outside;
        outside = !inside;
    }
    return rounds;
}

static void look_at(struct gt_starved *of, const struct gt_graph *graph,
                    const struct gt_lane_step *s)
{
    struct gt_starved *its = &of[s->lock];
    uint64_t rounds = rounds_in(graph, s), ns = s->to - s->from;
    if (!rounds)
        return;
    its->lock = s->lock;
    its->waits++;
    its->ns += ns;
    its->rounds += rounds;
    if (ns > its->longest) {
        its->longest = ns;
        its->longest_at = s->from;
        its->spot = s->spot;
    }
}

struct gt_starved gt_starved_find(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    struct gt_starved *of = gt_need(calloc(graph->locks + 1, sizeof *of));
    struct gt_starved most = {.lock = GT_NOBODY};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_EACH_STEP_IN(s, graph, i, from, to) {
            if (writes(graph, s))
                look_at(of, graph, s);
        }
    }
    for (size_t i = 0; i < graph->locks; i++)
        most = of[i].ns > most.ns ? of[i] : most;
    free(of);
    return most;
}
