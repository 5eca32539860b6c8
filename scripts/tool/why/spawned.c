/* See spawned.h. */
#include "spawned.h"

#include "reaped.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>

/* A call that starts a process. */
struct spawn {
    uint64_t from, to;
    uint32_t thread;
};

struct spawns {
    struct spawn *at;
    size_t n;
};

static bool is_spawn(const struct gt_spot *spot)
{
    static const char *const calls[] = {"fork",   "vfork", "clone", "posix_spawn",
                                        "system", "popen", NULL};
    return !spot->runs && gt_begins_with(gt_leaf_of(spot->stack), calls);
}

static void find_calls(struct spawns *found, const struct gt_graph *graph)
{
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_EACH_STEP(s, graph, i) {
            if (!is_spawn(&graph->spot[s->spot]))
                continue;
            *GT_ADD(found->at, found->n) = (struct spawn){s->from, s->to, i};
        }
    }
}

GT_ORDER(by_begin, struct spawn, GT_UP(from))

/* The last spawning call, in another process, that began before the lane. NULL: there is none. */
static const struct spawn *call_for(const struct spawns *found, const struct gt_graph *graph,
                                    const struct gt_lane *lane)
{
    size_t n =
        gt_count_up_to(found->at, found->n, sizeof *found->at, sizeof found->at->from, lane->begin);
    while (n && !gt_is_of_other_process(lane->thread, graph->lane[found->at[n - 1].thread].thread))
        n--;
    return n ? &found->at[n - 1] : NULL;
}

void gt_spawned_find(struct gt_graph *graph)
{
    struct spawns found = {0};
    if (gt_graph_is_of_family(graph))
        find_calls(&found, graph);
    if (found.n)
        qsort(found.at, found.n, sizeof *found.at, by_begin);
    for (uint32_t i = 0; i < graph->lanes; i++) {
        struct gt_lane *lane = &graph->lane[i];
        const struct gt_thread_state *maker = lane->thread->maker;
        const struct spawn *call = maker || i == 0 ? NULL : call_for(&found, graph, lane);
        lane->creator = maker && maker->number != i ? maker->number
                        : call                      ? call->thread
                                                    : GT_NOBODY;
        lane->created = call && call->to < lane->begin ? call->to : lane->begin;
    }
    free(found.at);
}
