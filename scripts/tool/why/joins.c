/* See joins.h. */
#include "joins.h"

#include "scripts/tool/report/frames.h"
#include "scripts/tool/report/places.h"
#include "scripts/tool/report/roles.h"

#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    SOON_NS = 1000000, /* between the joins of a series; from a thread's last word to its end */
    LEAST_ROUNDS = 8,
    REST_ROUNDS = 2,     /* one is begun, and they differ */
    LIKE_MOST = 8,       /* threads: a sample is enough, */
    LOOKED_MOST = 64,    /* of the next ones to end; */
    STEPS_MOST = 100000, /* and of what each did */
};

/* A thread that has ended. */
struct child {
    uint32_t maker, thread;
    uint64_t until;
};

struct look {
    struct gt_graph *graph;
    struct child *child; /* by maker, then by their ends */
    size_t children;
    uint64_t *fed; /* by thread: waits for it, not for locks nor for its end; NULL: not asked yet */
    bool *awaited; /* by thread: there is a wait for its end */
    uint32_t thread;    /* that joins */
    uint64_t arrival;   /* when it came to the first of a series of joins, */
    const char *series; /* of threads with this routine; or NULL */
    uint64_t *over;     /* when its joins were over */
    size_t overs, overs_room;
    size_t next;            /* its child that ends next */
    struct child **pending; /* that have ended and are not joined, as they began */
    size_t pendings, pendings_room;
};

static int by_maker(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    if (x->maker != y->maker)
        return x->maker < y->maker ? -1 : 1;
    if (x->until != y->until)
        return x->until < y->until ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void find_children(struct look *l)
{
    const struct gt_graph *graph = l->graph;
    l->child = gt_need(malloc((graph->lanes + 1) * sizeof *l->child));
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        const struct gt_thread_state *maker = lane->thread->maker;
        if (maker && maker->number != i && lane->steps && lane->thread->ended)
            l->child[l->children++] = (struct child){maker->number, i, lane->until};
    }
    if (l->children)
        qsort(l->child, l->children, sizeof *l->child, by_maker);
}

/* The first child of that maker that ended then or later: an index. */
static size_t child_from(const struct look *l, uint32_t maker, uint64_t at)
{
    const struct child key = {.maker = maker, .until = at};
    size_t low = 0, high = l->children;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_maker(&l->child[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A wait for the end of a thread; or for what it says last, as those for futures are. */
static bool is_join(const struct gt_graph *graph, uint32_t thread, const struct gt_step *s)
{
    if (s->kind != GT_SYNC || s->by == GT_NOBODY)
        return false;
    const struct gt_lane *by = &graph->lane[s->by];
    bool last = by->thread->ended && by->thread->maker == graph->lane[thread].thread &&
                by->until < s->to + SOON_NS;
    return last || gt_role_of(gt_leaf_of(graph->spot[s->spot].stack)) == GT_ROLE_JOIN;
}

/* A wait that another thread ended, for work or an answer. */
static bool is_feeding(const struct gt_graph *graph, const struct gt_step *s)
{
    return s->by != GT_NOBODY &&
           (s->kind == GT_NETWORK || s->kind == GT_SLEEP || s->kind == GT_SYSCALL ||
            (s->kind == GT_SYNC && !graph->spot[s->spot].locks));
}

static void count_feeding(struct look *l, uint32_t thread)
{
    struct gt_cursor c = {.graph = l->graph, .thread = thread};
    bool woken = l->graph->lane[thread].woken;
    for (const struct gt_step *s; woken && (s = gt_cursor_next(&c));) {
        if (is_feeding(l->graph, s) && !is_join(l->graph, thread, s))
            l->fed[s->by]++;
    }
    gt_cursor_close(&c);
}

/* It takes a look at all that everybody did. */
static uint64_t fed_by(struct look *l, uint32_t thread)
{
    if (!l->fed) {
        l->fed = gt_need(calloc(l->graph->lanes + 1, sizeof *l->fed));
        for (uint32_t i = 0; i < l->graph->lanes; i++)
            count_feeding(l, i);
    }
    return l->fed[thread];
}

/* Rounds --------------------------------------------------------------------------------------- */

/* What threads did: of waits that were over by themselves, how many there were at one place. */
struct rounds {
    struct gt_memo visits;
    uint64_t threads, most, life;
    uint32_t who[LIKE_MOST];
    uint32_t spot;  /* that place */
    uint64_t fed;   /* waits that others ended, not for locks */
    uint64_t all;   /* such waits of one thread, in its whole life */
    bool different; /* others have had more, or less */
};

static void count_rounds(struct rounds *r, const struct look *l, uint32_t thread, uint64_t to)
{
    const struct gt_graph *graph = l->graph;
    const struct gt_lane *lane = &graph->lane[thread];
    struct gt_cursor c = {.graph = graph, .thread = thread};
    uint64_t all = 0, until = lane->begin;
    size_t left = STEPS_MOST;
    for (const struct gt_step *s; left && (s = gt_cursor_next(&c)); left--) {
        until = s->to;
        r->fed += s->to <= to && is_feeding(graph, s);
        bool waits = s->kind == GT_SLEEP || s->kind == GT_NETWORK ||
                     (s->kind == GT_SYNC && !graph->spot[s->spot].locks);
        all += waits && s->by == GT_NOBODY;
        if (!waits || s->by != GT_NOBODY || s->to > to)
            continue;
        uint64_t *visits = gt_need(gt_memo_at(&r->visits, s->spot + UINT64_C(1)));
        if (++*visits > r->most) {
            r->most = *visits;
            r->spot = s->spot;
        }
    }
    r->life += (to < until ? to : until) - lane->begin;
    r->different |= r->threads && all != r->all;
    r->all = all;
    r->who[r->threads++] = thread;
    gt_cursor_close(&c);
}

/* That is waited for in the thread's own loop, or with a timeout: no work that is done in parts. */
static bool is_in_loop(const struct gt_spot *spot)
{
    uint32_t own = 0;
    for (uint32_t i = 1; spot->stack && i < spot->stack->n; i++)
        own += gt_frame_is_own(spot->stack, i);
    return own == 1 || gt_role_of(gt_leaf_of(spot->stack)) != GT_ROLE_OTHER;
}

/* With no work from others, or for others. */
static bool go_round(struct look *l, const struct rounds *r)
{
    uint64_t fed = r->fed;
    if (!r->threads || r->most < r->threads * LEAST_ROUNDS || fed * LEAST_ROUNDS > r->most)
        return false;
    for (uint64_t i = 0; i < r->threads; i++)
        fed += fed_by(l, r->who[i]);
    return fed * LEAST_ROUNDS <= r->most;
}

/*
 * Whether the thread went round by itself until that time, with no work from or for others, and
 * ended about a round later. Its like at its time are one with it: some may only have waited for a
 * lock that others had. But where all went round as often each had its part of some work to do.
 */
static bool was_told_to_stop(struct look *l, uint32_t thread, uint64_t at)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    const struct gt_thread_state *its = lane->thread;
    uint64_t rest = lane->until > at ? lane->until - at : 0;
    if (!its->maker || at <= lane->begin || (at - lane->begin) * REST_ROUNDS < rest * LEAST_ROUNDS)
        return false;
    struct rounds r = {0};
    size_t first = child_from(l, its->maker->number, lane->begin);
    size_t end = l->children - first < LOOKED_MOST ? l->children : first + LOOKED_MOST;
    for (size_t i = first;
         i < end && l->child[i].maker == its->maker->number && r.threads < LIKE_MOST; i++) {
        const struct gt_lane *like = &l->graph->lane[l->child[i].thread];
        if (like->thread->routine == its->routine && like->begin < at)
            count_rounds(&r, l, l->child[i].thread, at);
    }
    gt_memo_free(&r.visits);
    return go_round(l, &r) && rest <= r.life / r.most * REST_ROUNDS &&
           (r.threads > 1 ? r.different : is_in_loop(&l->graph->spot[r.spot]));
}

/* Joins without a wait ------------------------------------------------------------------------- */

static uint64_t begin_of(const struct look *l, const struct child *child)
{
    return l->graph->lane[child->thread].begin;
}

static void add_pending(struct look *l, struct child *child)
{
    l->pending = gt_need_room(l->pending, l->pendings, &l->pendings_room, sizeof(void *));
    size_t i = l->pendings++;
    for (; i && begin_of(l, l->pending[i - 1]) > begin_of(l, child); i--)
        l->pending[i] = l->pending[i - 1];
    l->pending[i] = child;
}

static void end_children(struct look *l, uint64_t until)
{
    for (; l->next < l->children && l->child[l->next].maker == l->thread &&
           l->child[l->next].until <= until;
         l->next++)
        add_pending(l, &l->child[l->next]);
}

/* Those that began then or later are joined, and the thread goes on at that time. */
static void join_pending(struct look *l, uint64_t since, uint64_t arrival, uint64_t at)
{
    for (; l->pendings && begin_of(l, l->pending[l->pendings - 1]) >= since; l->pendings--) {
        const struct child *it = l->pending[l->pendings - 1];
        if (!was_told_to_stop(l, it->thread, arrival < it->until ? arrival : it->until))
            l->graph->lane[it->thread].joined = at;
    }
}

/* When the thread was last over with a join before that time. */
static uint64_t last_over(const struct look *l, uint64_t at)
{
    size_t low = 0, high = l->overs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->over[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? l->over[low - 1] : 0;
}

/* All of it ------------------------------------------------------------------------------------ */

/*
 * With the thread that is waited for go those that were made after the join before it was made.
 * Who was made before that is joined with others, later.
 */
static void look_at_join(struct look *l, const struct gt_step *s)
{
    struct gt_lane *by = &l->graph->lane[s->by];
    l->arrival = l->series == by->thread->routine ? l->arrival : s->from;
    l->series = by->thread->routine;
    by->stopped = by->thread->ended && was_told_to_stop(l, s->by, l->arrival);
    l->awaited[s->by] = true;
    end_children(l, s->to);
    join_pending(l, last_over(l, by->begin), l->arrival, s->to);
    l->over = gt_need_room(l->over, l->overs, &l->overs_room, sizeof *l->over);
    l->over[l->overs++] = s->to;
}

static void look_at_thread(struct look *l)
{
    struct gt_cursor c = {.graph = l->graph, .thread = l->thread};
    const struct gt_lane *lane = &l->graph->lane[l->thread];
    l->series = NULL;
    l->overs = l->pendings = 0;
    l->next = child_from(l, l->thread, 0);
    for (const struct gt_step *s; lane->woken && (s = gt_cursor_next(&c));) {
        if (is_join(l->graph, l->thread, s))
            look_at_join(l, s);
        else if (s->kind != GT_SCHED && s->to - s->from >= SOON_NS)
            l->series = NULL;
    }
    end_children(l, lane->until);
    join_pending(l, 0, lane->until, lane->until);
    gt_cursor_close(&c);
}

void gt_joins_find(struct gt_graph *graph)
{
    struct look l = {.graph = graph};
    find_children(&l);
    l.awaited = gt_need(calloc(graph->lanes + 1, sizeof *l.awaited));
    for (l.thread = 0; l.thread < graph->lanes; l.thread++)
        look_at_thread(&l);
    for (size_t i = 0; i < graph->lanes; i++)
        graph->lane[i].joined = l.awaited[i] ? 0 : graph->lane[i].joined;
    free(l.child);
    free(l.fed);
    free(l.awaited);
    free(l.over);
    free(l.pending);
}

bool gt_joins_is_rest(const struct gt_graph *graph, const struct gt_step *s)
{
    if (s->by == GT_NOBODY || s->kind != GT_SYNC || !graph->lane[s->by].stopped)
        return false;
    const struct gt_spot *spot = &graph->spot[s->spot];
    return spot->locks || gt_role_of(gt_leaf_of(spot->stack)) == GT_ROLE_JOIN;
}
