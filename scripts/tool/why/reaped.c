/* See reaped.h. */
#include "reaped.h"

#include "partners.h"

#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* A shorter wait for a child found that it had ended before. */
enum { LEAST_NS = 100000 };

/* In merged traces a thread's name begins with its process: "worker.4711/main". 0: it does not. */
static size_t process_length(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

bool gt_is_of_other_process(const struct gt_lane *a, const struct gt_lane *b)
{
    const char *x = gt_name_or_routine(a->thread), *y = gt_name_or_routine(b->thread);
    size_t n = process_length(x), k = process_length(y);
    return n && k && (n != k || memcmp(x, y, n) != 0);
}

/* Whether the lane is the main thread of another process than the waiter's. */
static bool is_main_of_other(const struct gt_lane *lane, const struct gt_lane *waiter)
{
    const char *name = gt_name_or_routine(lane->thread);
    return gt_is_of_other_process(lane, waiter) && strcmp(strchr(name, '/'), "/main") == 0;
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

/*
 * Whether a child's end may have ended the step: by SIGCHLD, or by closing the child's end of a
 * pipe.
 */
static bool may_end_with_child(const struct gt_graph *graph, const struct gt_step *s)
{
    static const char *const inputs[] = {"read",  "getdelim", "getline", "fgets",  "fread", "poll",
                                         "ppoll", "select",   "pselect", "epoll_", NULL};
    const struct gt_spot *spot = &graph->spot[s->spot];
    if (s->by != GT_NOBODY || !s->ended || spot->runs || s->to - s->from < LEAST_NS)
        return false;
    const char *call = gt_leaf_of(spot->stack);
    return s->kind == GT_NETWORK || gt_waits_for_signal(call) || gt_begins_with(call, inputs);
}

/* The last two waits that may have ended with a child, the latest first. */
struct latest {
    struct gt_step at[2];
};

static void note_wait(struct latest *l, const struct gt_step *s)
{
    l->at[1] = l->at[0];
    l->at[0] = *s;
}

/*
 * Returns the child that ended waitpid. If waitpid did not block, or no child is known to have
 * ended meanwhile: the child that ended during the parent's last wait, or during the wait before
 * that.
 */
static uint32_t child_of(const struct gt_graph *graph, const struct gt_lane *lane,
                         const struct gt_step *s, const struct latest *l)
{
    enum { SOON_NS = 10000000 };
    uint32_t by = s->to - s->from >= LEAST_NS ? ended_in(graph, lane, s) : GT_NOBODY;
    uint64_t next = s->from;
    for (int i = 0; i < 2 && by == GT_NOBODY && l->at[i].to && l->at[i].to + SOON_NS >= next; i++) {
        by = ended_in(graph, lane, &l->at[i]);
        next = l->at[i].from;
    }
    return by;
}

/*
 * The child whose last event was before the step, a long wait for a child; of several, the last one
 * that no wait was for. It is ending meanwhile. GT_NOBODY: there is none.
 */
static uint32_t ended_before(const struct gt_graph *graph, const struct gt_lane *waiter,
                             const struct gt_step *s, const bool *reaped)
{
    uint32_t found = GT_NOBODY;
    for (uint32_t i = 0; s->to - s->from >= LEAST_NS && i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        const struct gt_thread_state *maker = lane->thread->maker;
        bool child = lane->steps && maker && is_main_of_other(lane, waiter) &&
                     !gt_is_of_other_process(&(struct gt_lane){.thread = maker}, waiter);
        if (child && !reaped[i] && lane->until <= s->from &&
            (found == GT_NOBODY || lane->until > graph->lane[found].until))
            found = i;
    }
    return found;
}

static void look_at_thread(struct gt_graph *graph, uint32_t thread, bool *reaped)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct gt_cursor c = {.graph = graph, .thread = thread};
    struct latest latest = {0};
    struct gt_handed *found = NULL;
    size_t n = 0, room = 0;
    for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
        if (may_end_with_child(graph, s))
            note_wait(&latest, s);
        if (s->by != GT_NOBODY || !s->ended || !graph->spot[s->spot].reaps)
            continue;
        uint32_t by = child_of(graph, lane, s, &latest);
        uint32_t child = by == GT_NOBODY ? ended_before(graph, lane, s, reaped) : by;
        latest = (struct latest){0};
        if (child == GT_NOBODY)
            continue;
        uint64_t at = by == GT_NOBODY ? s->from + 1 : graph->lane[by].until;
        reaped[child] = true;
        found = gt_need_room(found, n, &room, sizeof *found);
        found[n++] = (struct gt_handed){.at = at, .by = by, .lock = GT_NOBODY, .ending = true};
    }
    gt_cursor_close(&c);
    gt_lane_hand(lane, found, n);
}

/* Processes of another parent ------------------------------------------------------------------ */

/* The process descends from the waiter's, but another process has to reap it: a fork server. */
static bool is_grandchild(const struct gt_lane *lane, const struct gt_lane *waiter)
{
    const struct gt_thread_state *maker = lane->thread->maker;
    bool direct = true;
    for (; maker; maker = maker->maker, direct = false) {
        if (!gt_is_of_other_process(&(struct gt_lane){.thread = maker}, waiter))
            return !direct;
    }
    return false;
}

/*
 * Whether no other process did anything between that process's last event and the end of the step,
 * apart from the parent, which learns of the end and tells the waiter.
 */
static bool is_last_to_work(const struct gt_graph *graph, struct gt_cursor *cursor, uint32_t by,
                            const struct gt_lane *waiter, const struct gt_step *s)
{
    const struct gt_lane *its = &graph->lane[by];
    bool last = true;
    for (uint32_t i = 0; i < graph->lanes && last; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        uint64_t until;
        bool told = !gt_is_of_other_process(lane, waiter) || lane->thread == its->thread->maker;
        last = told || gt_since_active(&cursor[i], its->until, s->to, &until) == UINT64_MAX;
    }
    return last;
}

static void look_for_grandchildren(struct gt_graph *graph, uint32_t thread,
                                   struct gt_cursor *cursor)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct gt_handed *found = NULL;
    struct gt_cursor c = {.graph = graph, .thread = thread};
    size_t n = 0, room = 0;
    for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
        uint32_t by =
            may_end_with_child(graph, s) && !s->ending ? ended_in(graph, lane, s) : GT_NOBODY;
        if (by == GT_NOBODY || !is_grandchild(&graph->lane[by], lane) ||
            !is_last_to_work(graph, cursor, by, lane, s))
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
        any = graph->spot[i].reaps;
    bool *reaped = gt_need(calloc(graph->lanes + 1, sizeof *reaped));
    for (uint32_t i = 0; any && i < graph->lanes; i++)
        look_at_thread(graph, i, reaped);
    free(reaped);
    bool family = gt_graph_is_of_family(graph);
    for (uint32_t i = 0; family && i < graph->lanes; i++) {
        struct gt_cursor *cursor = gt_cursors_open(graph);
        look_for_grandchildren(graph, i, cursor);
        gt_cursors_close(cursor);
    }
}
