/* See reaped.h. */
#include "reaped.h"

#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include "encoder/read/need.h"

#include <string.h>

/* A shorter wait for a child found that it had ended before. */
enum { LEAST_NS = 100000 };

static bool reaps(const struct gt_spot *spot)
{
    return !spot->runs && gt_waits_for_child(gt_leaf_of(spot->stack));
}

/* In merged traces a thread's name begins with its process: "worker.4711/main". 0: it does not. */
static size_t process_length(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

/* Whether the lane is the main thread of another process than the waiter's. */
static bool is_main_of_other(const struct gt_lane *lane, const struct gt_lane *waiter)
{
    const char *its = gt_name_or_routine(lane->thread), *own = gt_name_or_routine(waiter->thread);
    size_t n = process_length(its), k = process_length(own);
    return n && k && strcmp(its + n, "/main") == 0 && (n != k || memcmp(its, own, n) != 0);
}

/* The other process that ended last during the step, by its main thread; or GT_NOBODY. */
static uint32_t ended_in(const struct gt_graph *graph, const struct gt_lane *waiter,
                         const struct gt_step *s)
{
    uint32_t found = GT_NOBODY;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        bool within = lane->steps && lane->until > s->from && lane->until <= s->to;
        if (within && is_main_of_other(lane, waiter) &&
            (found == GT_NOBODY || lane->until > graph->lane[found].until))
            found = i;
    }
    return found;
}

static void look_at_thread(struct gt_graph *graph, uint32_t thread)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct gt_cursor c = {.graph = graph, .thread = thread};
    struct gt_handed *found = NULL;
    size_t n = 0, room = 0;
    for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
        if (s->by != GT_NOBODY || !s->ended || s->to - s->from < LEAST_NS ||
            !reaps(&graph->spot[s->spot]))
            continue;
        uint32_t by = ended_in(graph, lane, s);
        if (by == GT_NOBODY)
            continue;
        found = gt_need_room(found, n, &room, sizeof *found);
        found[n++] = (struct gt_handed){
            .at = graph->lane[by].until, .by = by, .lock = GT_NOBODY, .ending = true};
    }
    gt_cursor_close(&c);
    gt_lane_hand(lane, found, n);
}

void gt_reaped_find(struct gt_graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->spots && !any; i++)
        any = reaps(&graph->spot[i]);
    for (uint32_t i = 0; any && i < graph->lanes; i++)
        look_at_thread(graph, i);
}
