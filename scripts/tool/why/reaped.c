/* See reaped.h. */
#include "reaped.h"

#include "partners.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_NS = 100000,     /* a shorter wait for a child found that it had ended before */
    ENDING_NS = 300000000, /* a process takes no longer to end after its last event */
};

/* In merged traces a thread's name begins with its process: "worker.4711/main". 0: it does not. */
static size_t process_length(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? (size_t)(slash - name) : 0;
}

bool gt_is_of_other_process(const struct gt_thread_state *a, const struct gt_thread_state *b)
{
    const char *x = gt_name_or_routine(a), *y = gt_name_or_routine(b);
    size_t n = process_length(x), k = process_length(y);
    return n && k && (n != k || memcmp(x, y, n) != 0);
}

/* The main threads of all processes, in the order of their ends. */
struct mains {
    const struct gt_graph *graph;
    const struct gt_lane **at;
    bool *reaped; /* by lane: a wait was for its process */
    size_t n;
};

GT_ORDER_POINTERS(compare_ends, struct gt_lane, GT_UP(until))

static struct mains find_mains(const struct gt_graph *graph)
{
    struct mains mains = {.graph = graph,
                          .at = gt_need(calloc(graph->lanes + 1, sizeof(struct gt_lane *))),
                          .reaped = gt_need(calloc(graph->lanes + 1, sizeof(bool)))};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const char *slash = strchr(gt_name_or_routine(graph->lane[i].thread), '/');
        if (graph->lane[i].steps && slash && strcmp(slash, "/main") == 0)
            mains.at[mains.n++] = &graph->lane[i];
    }
    qsort(mains.at, mains.n, sizeof *mains.at, compare_ends);
    return mains;
}

/* The number of main threads that ended at that time or before. */
static size_t ended_until(const struct mains *mains, uint64_t at)
{
    size_t lo = 0, hi = mains->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        lo = mains->at[mid]->until <= at ? mid + 1 : lo;
        hi = lo > mid ? hi : mid;
    }
    return lo;
}

/* The other process that ended last during the step, by its main thread; or GT_NOBODY. */
static uint32_t ended_in(const struct mains *mains, const struct gt_lane *waiter,
                         const struct gt_lane_step *s)
{
    for (size_t i = ended_until(mains, s->to); i && mains->at[i - 1]->until > s->from; i--) {
        if (gt_is_of_other_process(mains->at[i - 1]->thread, waiter->thread))
            return (uint32_t)(mains->at[i - 1] - mains->graph->lane);
    }
    return GT_NOBODY;
}

/*
 * Whether a child's end may have ended the step: by SIGCHLD, or by closing the child's end of a
 * pipe.
 */
static bool may_end_with_child(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    static const char *const inputs[] = {"read",  "getdelim", "getline", "fgets",  "fread", "poll",
                                         "ppoll", "select",   "pselect", "epoll_", NULL};
    const struct gt_spot *spot = &graph->spot[s->spot];
    if (s->by != GT_NOBODY || !s->ended || spot->runs || s->to - s->from < LEAST_NS)
        return false;
    const char *call = gt_leaf_of(spot->stack);
    return s->kind == GT_NETWORK || gt_waits_for_signal(s->kind, call) ||
           gt_begins_with(call, inputs);
}

/* The last two waits that may have ended with a child, the latest first. */
struct latest {
    struct gt_lane_step at[2];
};

static void note_wait(struct latest *l, const struct gt_lane_step *s)
{
    l->at[1] = l->at[0];
    l->at[0] = *s;
}

/*
 * Returns the child that ended waitpid. If waitpid did not block, or no child is known to have
 * ended meanwhile: the child that ended during the parent's last wait, or during the wait before
 * that.
 */
static uint32_t child_of(const struct mains *mains, const struct gt_lane *lane,
                         const struct gt_lane_step *s, const struct latest *l)
{
    enum { SOON_NS = 10000000 };
    uint32_t by = s->to - s->from >= LEAST_NS ? ended_in(mains, lane, s) : GT_NOBODY;
    uint64_t next = s->from;
    for (int i = 0; i < 2 && by == GT_NOBODY && l->at[i].to && l->at[i].to + SOON_NS >= next; i++) {
        by = ended_in(mains, lane, &l->at[i]);
        next = l->at[i].from;
    }
    return by;
}

/*
 * The child whose last event was before the step; of several, the last one that no wait was for. It
 * is ending meanwhile, or, if the step is short, it has ended. GT_NOBODY: there is none.
 */
static uint32_t ended_before(const struct mains *mains, const struct gt_lane *waiter,
                             const struct gt_lane_step *s)
{
    for (size_t i = ended_until(mains, s->from); i; i--) {
        const struct gt_lane *lane = mains->at[i - 1];
        const struct gt_thread_state *maker = lane->thread->maker;
        uint32_t child = (uint32_t)(lane - mains->graph->lane);
        if (!mains->reaped[child] && maker &&
            gt_is_of_other_process(lane->thread, waiter->thread) &&
            !gt_is_of_other_process(maker, waiter->thread))
            return child;
    }
    return GT_NOBODY;
}

static void look_at_thread(struct gt_graph *graph, uint32_t thread, const struct mains *mains)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct latest latest = {0};
    struct gt_handed *found = NULL;
    size_t n = 0;
    GT_EACH_STEP(s, graph, thread) {
        if (may_end_with_child(graph, s))
            note_wait(&latest, s);
        if (s->by != GT_NOBODY || !s->ended || !graph->spot[s->spot].reaps)
            continue;
        uint32_t by = child_of(mains, lane, s, &latest);
        uint32_t child = by == GT_NOBODY ? ended_before(mains, lane, s) : by;
        latest = (struct latest){0};
        if (child == GT_NOBODY)
            continue;
        mains->reaped[child] = true;
        uint64_t until = graph->lane[child].until;
        bool blocked = s->to - s->from >= LEAST_NS;
        if (until <= s->from && (blocked ? s->to > until + ENDING_NS : by == GT_NOBODY))
            continue;
        uint64_t at = by == GT_NOBODY ? s->from + 1 : until;
        *GT_ADD(found, n) =
            (struct gt_handed){.at = at, .by = by, .lock = GT_NOBODY, .ending = true};
    }
    gt_lane_hand(lane, found, n);
}

/* Processes of another parent ------------------------------------------------------------------ */

/* The process descends from the waiter's, but another process has to reap it: a fork server. */
static bool is_grandchild(const struct gt_lane *lane, const struct gt_lane *waiter)
{
    const struct gt_thread_state *maker = lane->thread->maker;
    bool direct = true;
    for (; maker; maker = maker->maker, direct = false) {
        if (!gt_is_of_other_process(maker, waiter->thread))
            return !direct;
    }
    return false;
}

static bool has_grandchildren(const struct mains *mains)
{
    for (size_t i = 0; i < mains->n; i++) {
        const struct gt_thread_state *parent = mains->at[i]->thread->maker;
        for (const struct gt_thread_state *t = parent; t; t = t->maker) {
            if (gt_is_of_other_process(t, parent))
                return true;
        }
    }
    return false;
}

/*
 * Whether no other process did anything between that process's last event and the end of the step,
 * apart from the parent, which learns of the end and tells the waiter.
 */
static bool is_last_to_work(const struct gt_graph *graph, struct gt_cursor *cursor, uint32_t by,
                            const struct gt_lane *waiter, const struct gt_lane_step *s)
{
    const struct gt_lane *its = &graph->lane[by];
    bool last = true;
    for (uint32_t i = 0; i < graph->lanes && last; i++) {
        const struct gt_thread_state *t = graph->lane[i].thread;
        uint64_t until;
        bool told = !gt_is_of_other_process(t, waiter->thread) || t == its->thread->maker;
        last = told || gt_since_active(&cursor[i], its->until, s->to, &until) == UINT64_MAX;
    }
    return last;
}

static void look_for_grandchildren(struct gt_graph *graph, uint32_t thread,
                                   const struct mains *mains)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct gt_handed *found = NULL;
    struct gt_cursor *cursor = NULL;
    size_t n = 0;
    GT_EACH_STEP(s, graph, thread) {
        uint32_t by =
            may_end_with_child(graph, s) && !s->ending ? ended_in(mains, lane, s) : GT_NOBODY;
        if (by == GT_NOBODY || !is_grandchild(&graph->lane[by], lane))
            continue;
        cursor = cursor ? cursor : gt_cursors_open(graph);
        if (!is_last_to_work(graph, cursor, by, lane, s))
            continue;
        *GT_ADD(found, n) = (struct gt_handed){
            .at = graph->lane[by].until, .by = by, .lock = GT_NOBODY, .ending = true};
    }
    if (cursor)
        gt_cursors_close(cursor);
    gt_lane_hand(lane, found, n);
}

void gt_reaped_find(struct gt_graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->spots && !any; i++)
        any = graph->spot[i].reaps;
    struct mains mains = find_mains(graph);
    for (uint32_t i = 0; any && i < graph->lanes; i++)
        look_at_thread(graph, i, &mains);
    bool family = gt_graph_is_of_family(graph) && has_grandchildren(&mains);
    for (uint32_t i = 0; family && i < graph->lanes; i++)
        look_for_grandchildren(graph, i, &mains);
    free(mains.reaped);
    free(mains.at);
}
