/* See futex_holds.h. */
#include "futex_holds.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>
#include <string.h>

/* A wait for the lock. It ends when `by` releases the lock. */
struct wait {
    uint64_t since, at;
    uint32_t lock, spot, thread, by;
};

struct waits {
    struct wait *at;
    size_t n;
};

static void find_waits(struct waits *waits, const struct gt_graph *graph, uint32_t thread)
{
    GT_EACH_STEP(s, graph, thread) {
        if (!graph->spot[s->spot].futex || s->by == GT_NOBODY || !gt_graph_is_lock_wait(graph, s))
            continue;
        *GT_ADD(waits->at, waits->n) =
            (struct wait){s->from, s->to, s->lock, s->spot, thread, s->by};
    }
}

GT_ORDER(by_begin, struct wait, GT_UP(lock) ?: GT_UP(since))

GT_ORDER(by_end, struct wait, GT_UP(lock) ?: GT_UP(at))

/*
 * When the thread that ends `w` had the lock already, after the release before, which ended `last`
 * (NULL: there is none). It has had the lock since that release if that one woke it. Otherwise it
 * had the lock when another thread began to wait. begun: sorted by begin; *next: where to look on.
 * UINT64_MAX: not known.
 */
static uint64_t had_since(const struct waits *begun, size_t *next, const struct wait *w,
                          const struct wait *last)
{
    while (*next < begun->n &&
           (begun->at[*next].lock < w->lock ||
            (last && begun->at[*next].lock == w->lock && begun->at[*next].since < last->at)))
        ++*next;
    if (last && last->thread == w->by)
        return last->at;
    for (size_t i = *next; i < begun->n && begun->at[i].lock == w->lock; i++) {
        if (begun->at[i].since >= w->at)
            break;
        if (begun->at[i].thread != w->by)
            return begun->at[i].since;
    }
    return UINT64_MAX;
}

/* What threads do with the lock --------------------------------------------------------------- */

enum { NO_LOCK, SEVERAL = UINT32_MAX };

/* A hold, or a call that was made with the lock in other holds. */
struct stretch {
    uint64_t from, to;
    uint32_t lock, thread, spot; /* spot: GT_NOBODY of a hold */
};

struct stretches {
    struct stretch *at;
    size_t n;
};

static void add_stretch(struct stretches *all, struct stretch it)
{
    *GT_ADD(all->at, all->n) = it;
}

GT_ORDER(by_from, struct stretch, GT_UP(lock) ?: GT_UP(from))

/* Notes the calls that end during the hold: no thread locks inside another call. */
static void note_calls(const struct gt_graph *graph, const struct stretch *hold, uint32_t *lock_of)
{
    GT_CURSOR(c, graph, hold->thread);
    for (const struct gt_lane_step *s = gt_cursor_from(&c, hold->from); s && s->to <= hold->to;
         s = gt_cursor_next(&c)) {
        const struct gt_spot *spot = &graph->spot[s->spot];
        uint32_t *its = &lock_of[s->spot], lock = hold->lock + 1;
        if (!spot->runs && !spot->futex)
            *its = *its == NO_LOCK || *its == lock ? lock : SEVERAL;
    }
}

static void find_calls(struct stretches *all, const struct gt_graph *graph, uint32_t thread,
                       const uint32_t *lock_of)
{
    GT_EACH_STEP(s, graph, thread) {
        uint32_t lock = lock_of[s->spot];
        bool its = lock != NO_LOCK && lock != SEVERAL;
        if (its && s->kind != GT_SCHED)
            add_stretch(all, (struct stretch){s->from, s->to, lock - 1, thread, s->spot});
        else if (its && all->n && all->at[all->n - 1].thread == thread)
            all->at[all->n - 1].to = s->to; /* its delay after the call */
    }
}

/* Forgets calls during which another thread had the lock, or was in such a call. */
static void drop_what_overlaps(const struct stretches *all, uint32_t *lock_of)
{
    enum {
        SLACK_NS = 100000
    }; /* a hold ends with the call that wakes a thread, after the unlock */
    const struct stretch *last = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct stretch *it = &all->at[i];
        last = last && last->lock == it->lock ? last : NULL;
        if (last && last->thread != it->thread && last->to > it->from + SLACK_NS) {
            if (it->spot != GT_NOBODY)
                lock_of[it->spot] = SEVERAL;
            if (last->spot != GT_NOBODY)
                lock_of[last->spot] = SEVERAL;
        }
        last = last && last->to > it->to ? last : it;
    }
}

static bool is_held(const struct gt_lane *lane, const struct stretch *it)
{
    struct gt_hold_walk walk = {0};
    const struct gt_lock_hold *h;
    while ((h = gt_lane_next_hold(lane, it->from, &walk)) &&
           (h->lock != it->lock || h->from >= it->to))
        ;
    return h;
}

/*
 * No thread waits for the lock during some of its holds. A thread that makes a call with the lock,
 * with one stack, has the lock whenever it makes that call, if nothing speaks against it.
 */
static void add_quiet_holds(struct gt_graph *graph, struct stretches *all)
{
    uint32_t *lock_of = gt_need(calloc(graph->spots + 1, sizeof *lock_of));
    size_t holds = all->n;
    for (size_t i = 0; i < holds; i++)
        note_calls(graph, &all->at[i], lock_of);
    for (uint32_t i = 0; i < graph->lanes; i++)
        find_calls(all, graph, i, lock_of);
    qsort(all->at, all->n, sizeof *all->at, by_from);
    drop_what_overlaps(all, lock_of);
    size_t n = 0; /* calls to add: those that no hold has yet */
    for (size_t i = 0; i < all->n; i++) {
        const struct stretch it = all->at[i];
        if (it.spot != GT_NOBODY && lock_of[it.spot] != SEVERAL &&
            !is_held(&graph->lane[it.thread], &it))
            all->at[n++] = it;
    }
    const char *taker = "";
    for (size_t i = 0; i < n; i++) {
        const struct stretch *it = &all->at[i];
        taker = i && it[-1].lock == it->lock ? taker : gt_taker_of(graph, it->lock);
        gt_graph_add_hold(graph, it->thread,
                          (struct gt_lock_hold){.from = it->from, .to = it->to, .lock = it->lock},
                          taker);
    }
    gt_graph_sort_holds(graph);
    free(lock_of);
}

void gt_futex_holds_find(struct gt_graph *graph)
{
    struct waits begun = {0};
    struct stretches held = {0};
    size_t next = 0;
    for (uint32_t i = 0; i < graph->lanes; i++)
        find_waits(&begun, graph, i);
    if (!begun.n)
        return;
    struct wait *ended = gt_need(malloc(begun.n * sizeof *ended));
    memcpy(ended, begun.at, begun.n * sizeof *ended);
    qsort(begun.at, begun.n, sizeof *begun.at, by_begin);
    qsort(ended, begun.n, sizeof *ended, by_end);
    for (size_t i = 0; i < begun.n; i++) {
        const struct wait *w = &ended[i], *last = i && w[-1].lock == w->lock ? w - 1 : NULL;
        const struct gt_spot *spot = &graph->spot[w->spot];
        const struct gt_where *site = gt_site_of(spot->stack);
        struct gt_lock_hold hold = {.from = had_since(&begun, &next, w, last),
                                    .to = w->at,
                                    .lock = w->lock,
                                    .once = spot->once};
        if (hold.from >= hold.to)
            continue;
        gt_graph_add_hold(graph, w->by, hold, site ? site->func : "");
        if (!hold.once)
            add_stretch(&held, (struct stretch){hold.from, hold.to, w->lock, w->by, GT_NOBODY});
    }
    gt_graph_sort_holds(graph);
    if (held.n)
        add_quiet_holds(graph, &held);
    free(begun.at);
    free(ended);
    free(held.at);
}
