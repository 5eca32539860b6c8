/* See joins.h. */
#include "joins.h"

#include "rests.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/frame_code.h"
#include "scripts/tool/report/lengths.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>

enum {
    SOON_NS = 1000000, /* between joins of a series; from a thread's last post to its end */
    LEAST_ROUNDS = 8,
    REST_ROUNDS = 2,     /* one round is under way, and rounds differ */
    LIKE_MOST = 8,       /* threads: a sample is enough */
    LOOKED_MOST = 64,    /* children looked at, from the next one to end */
    STEPS_MOST = 100000, /* steps looked at of each */
};

/* A thread that has ended. */
struct child {
    uint32_t maker, thread;
    uint64_t until;
};

struct look {
    struct gt_graph *graph;
    struct child *child; /* sorted by creator, then by end */
    size_t children;
    uint64_t *fed;    /* by thread: waits it ended, not for locks nor its end; NULL: not counted */
    bool *awaited;    /* by thread: some wait is for its end */
    uint64_t *place;  /* by spot: see place_of; 0: not known yet */
    uint32_t thread;  /* the thread that joins */
    uint64_t arrival; /* when it came to the first of a series of joins */
    const char *series; /* the routine of the threads in that series; or NULL */
    uint64_t *over;     /* when each of its joins was over */
    size_t overs;
    size_t next;            /* index of its child that ends next */
    struct child **pending; /* children that ended and are not joined, by their begin */
    size_t pendings;
};

GT_ORDER(by_maker, struct child, GT_UP(maker) ?: GT_UP(until) ?: GT_UP(thread))

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

/* Index of the creator's first child that ended at `at` or later. */
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

/*
 * Whether the thread ended just after it ended that wait: then it did nothing more but run, for a
 * small part of its life. It may have had no CPU, or waited for a lock, such as Python's.
 */
static bool is_last(const struct gt_lane *by, const struct gt_lane_step *s)
{
    enum { PART = 32 };
    bool ran = by->last_wait > s->to || by->ran > SOON_NS + (by->until - by->begin) / PART;
    return by->thread->ended && (!ran || by->until < s->to + SOON_NS);
}

/* Whether the step waits for a child process, up to the child's last event: see reaped.h. */
static bool reaps(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->kind != GT_SYNC && s->by != GT_NOBODY && s->to == graph->lane[s->by].until;
}

bool gt_joins_is_join(const struct gt_graph *graph, uint32_t thread, const struct gt_lane_step *s)
{
    if (s->kind != GT_SYNC || s->by == GT_NOBODY)
        return false;
    const struct gt_lane *by = &graph->lane[s->by];
    const struct gt_spot *spot = &graph->spot[s->spot];
    bool last = is_last(by, s) && by->thread->maker == graph->lane[thread].thread;
    return spot->joins || (last && !spot->locks);
}

/* Whether the step waited for work or an answer, and another thread ended it. */
static bool is_feeding(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->by != GT_NOBODY &&
           (s->kind == GT_NETWORK || s->kind == GT_SLEEP || s->kind == GT_SYSCALL ||
            (s->kind == GT_SYNC && !graph->spot[s->spot].locks));
}

static void count_feeding(struct look *l, uint32_t thread)
{
    GT_CURSOR(c, l->graph, thread);
    bool woken = l->graph->lane[thread].woken;
    for (const struct gt_lane_step *s; woken && (s = gt_cursor_next(&c));) {
        if (is_feeding(l->graph, s) && !gt_joins_is_join(l->graph, thread, s))
            l->fed[s->by]++;
    }
}

/*
 * How many waits for work or an answer the thread ended. The first call reads the steps of all
 * threads.
 */
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

/*
 * What some threads did in rounds: the largest number of waits at one place that no thread ended.
 */
struct rounds {
    struct gt_memo visits;
    uint64_t threads, most, life;
    uint32_t who[LIKE_MOST];
    uint32_t spot;  /* one of the place of `most` */
    uint64_t fed;   /* waits for work or answers that other threads ended */
    uint64_t all;   /* waits without a waker in the whole life of the last thread */
    bool different; /* the threads differ in `all` */
};

/*
 * A number for the program's own functions that wait there, and their lines. An interpreter may
 * come to one place by different ways.
 */
static uint64_t place_of(const struct look *l, uint32_t spot)
{
    const struct gt_callers *stack = l->graph->spot[spot].stack;
    if (!l->place[spot]) {
        uint64_t place = 0;
        for (uint32_t i = 1; stack && i < stack->n; i++) {
            if (gt_frame_is_own(stack, i))
                place = gt_hash_mix(gt_hash_mix(place, (uintptr_t)stack->frame[i].func),
                                    stack->frame[i].line);
        }
        l->place[spot] = (place ? place : gt_hash_mix(0, spot)) | 1;
    }
    return l->place[spot];
}

static void count_rounds(struct rounds *r, const struct look *l, uint32_t thread, uint64_t to)
{
    const struct gt_graph *graph = l->graph;
    const struct gt_lane *lane = &graph->lane[thread];
    GT_CURSOR(c, graph, thread);
    uint64_t all = 0, until = lane->begin;
    size_t left = STEPS_MOST;
    for (const struct gt_lane_step *s; left && (s = gt_cursor_next(&c)); left--) {
        until = s->to;
        r->fed += s->to <= to && is_feeding(graph, s);
        bool waits = s->kind == GT_SLEEP || s->kind == GT_NETWORK ||
                     (s->kind == GT_SYNC && !graph->spot[s->spot].locks);
        all += waits && s->by == GT_NOBODY;
        if (!waits || s->by != GT_NOBODY || s->to > to)
            continue;
        uint64_t *visits = gt_need(gt_memo_at(&r->visits, place_of(l, s->spot)));
        if (++*visits > r->most) {
            r->most = *visits;
            r->spot = s->spot;
        }
    }
    r->life += (to < until ? to : until) - lane->begin;
    r->different |= r->threads && all != r->all;
    r->all = all;
    r->who[r->threads++] = thread;
}

/*
 * Whether the thread waits in its own loop, or its wait on a condition variable or the like timed
 * out. Else it may do some work in parts.
 */
static bool is_in_loop(const struct gt_spot *spot)
{
    uint32_t own = 0;
    for (uint32_t i = 1; spot->stack && i < spot->stack->n; i++)
        own += gt_frame_is_own(spot->stack, i);
    return own == 1 || gt_role_of(gt_leaf_of(spot->stack)) != GT_ROLE_OTHER;
}

/* Whether the threads work in rounds, neither fed by other threads nor feeding any. */
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
 * Whether nearly all waits of the thread at that place are sleeps of one length: 3 of 4 are at most
 * a quarter longer than the shortest, and what a late wake-up takes. Parts of a work differ.
 */
static bool sleeps_alike(const struct look *l, uint32_t thread, uint32_t spot)
{
    enum { LATE_NS = 300000 };
    GT_CURSOR(c, l->graph, thread);
    struct gt_lengths lengths = {0};
    size_t left = STEPS_MOST;
    for (const struct gt_lane_step *s; left && (s = gt_cursor_next(&c)); left--) {
        if (s->kind == GT_SLEEP && s->ended && place_of(l, s->spot) == place_of(l, spot))
            gt_lengths_add(&lengths, s->to - s->from);
    }
    uint64_t shortest = gt_lengths_percentile(&lengths, 1);
    bool alike =
        lengths.n && gt_lengths_percentile(&lengths, 750) <= shortest + shortest / 4 + LATE_NS;
    free(lengths.at);
    return alike;
}

/*
 * Whether the thread worked like one of those rounds until `at`: at the same place or, if it had
 * ended by then and was not told to stop, in as many rounds to 5 %.
 */
static bool is_like(const struct look *l, uint32_t thread, const struct rounds *those, uint64_t at)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    bool counts = !lane->stopped && (lane->until <= at || !lane->thread->ended);
    struct rounds r = {0};
    count_rounds(&r, l, thread, at);
    uint64_t off = r.most > those->most ? r.most - those->most : those->most - r.most;
    gt_memo_free(&r.visits);
    return r.most &&
           ((counts && off * 20 <= those->most) || place_of(l, r.spot) == place_of(l, those->spot));
}

/*
 * Whether the thread's creator or another thread of the same creator worked like it: then both may
 * have done their parts of one work.
 */
static bool has_like(const struct look *l, uint32_t thread, const struct rounds *r, uint64_t at)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    uint32_t maker = lane->thread->maker->number;
    size_t i = child_from(l, maker, lane->begin), end = i + LOOKED_MOST;
    bool found = is_like(l, maker, r, at);
    for (; i < end && i < l->children && l->child[i].maker == maker && !found; i++)
        found = l->child[i].thread != thread && is_like(l, l->child[i].thread, r, at);
    return found;
}

/*
 * Whether the thread slept for the same time in each round, and ended less than a round after `at`,
 * as one does that looks at a flag in each round. By chance, work of its own would end then in one
 * of as many cases as it did rounds.
 */
static bool keeps_time(const struct look *l, uint32_t thread, const struct rounds *r, uint64_t at)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    uint64_t round = (lane->until - lane->begin) / r->most;
    bool keeps = lane->until < at + round + round / 4 && sleeps_alike(l, thread, r->spot) &&
                 !has_like(l, thread, r, at);
    l->graph->lane[thread].alike = keeps ? r->most : 0;
    return keeps;
}

/*
 * Whether the thread worked in rounds until `at`, with no work from or for other threads, and ended
 * about one round later. Other children with its routine are counted with it, as some of them may
 * only have waited for a contended lock. But if all went round equally often, each had its part of
 * some work to do.
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
    if (!go_round(l, &r) || rest > r.life / r.most * REST_ROUNDS)
        return false;
    return r.threads > 1 ? r.different
                         : is_in_loop(&l->graph->spot[r.spot]) || keeps_time(l, thread, &r, at);
}

/*
 * Whether the thread keeps time, apart from others with its routine: several closures may have one
 * name. at: when its creator came to join it, after others of them.
 */
static bool keeps_own_time(struct look *l, uint32_t thread, uint64_t at)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    struct rounds r = {0};
    if (!lane->thread->maker || at <= lane->begin)
        return false;
    count_rounds(&r, l, thread, at);
    gt_memo_free(&r.visits);
    return go_round(l, &r) && keeps_time(l, thread, &r, at);
}

/* Whether the step waits for input, and no thread is known that ended it. */
static bool is_for_input(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->by == GT_NOBODY &&
           (s->kind == GT_NETWORK || (s->kind == GT_SYSCALL && gt_graph_is_idle(graph, s)));
}

/*
 * Whether the thread waited for input nearly all of its life, last until its creator came to join
 * it, at `at`: the creator had told it to stop just before, by a write or close that no event
 * records. A thread whose last input came at another time may have had something to do.
 */
static bool waited_to_be_told(const struct look *l, uint32_t thread, uint64_t at)
{
    enum { LIFE = 8, LENGTH = 32, LATELY_NS = 10000000 };
    const struct gt_lane *lane = &l->graph->lane[thread];
    GT_CURSOR(c, l->graph, thread);
    uint64_t waited = 0, last = 0, length = 0;
    size_t left = STEPS_MOST;
    if (at <= lane->begin || lane->until + LATELY_NS < at)
        return false;
    for (const struct gt_lane_step *s; left && (s = gt_cursor_next(&c)); left--) {
        if (!is_for_input(l->graph, s))
            continue;
        length = s->to - s->from;
        waited += length;
        last = s->to;
    }
    uint64_t late = length / LENGTH > LATELY_NS ? length / LENGTH : LATELY_NS;
    return left && last + LATELY_NS >= at && last <= at + late &&
           waited >= (lane->until - lane->begin) / LIFE * (LIFE - 1);
}

/*
 * Whether the thread did next to nothing but wait with a timeout, until its creator, which joins it
 * at `at`, ended the last of these waits just before.
 */
static bool was_woken_to_stop(struct look *l, uint32_t thread, uint64_t at)
{
    enum { LIFE = 8, LATELY_NS = 10000000, FED_MOST = 1 };
    const struct gt_lane *lane = &l->graph->lane[thread];
    GT_CURSOR(c, l->graph, thread);
    uint64_t waited = 0, told = 0;
    size_t left = STEPS_MOST, fed = 0;
    if (at <= lane->begin || !lane->woken)
        return false;
    for (const struct gt_lane_step *s; left && (s = gt_cursor_next(&c)); left--) {
        bool waits = s->kind == GT_SLEEP || s->kind == GT_NETWORK || s->kind == GT_SYNC;
        waited += waits && s->by == GT_NOBODY ? s->to - s->from : 0;
        told = waits && s->by == l->thread ? s->to : told;
        waited += told == s->to ? s->to - s->from : 0;
        fed += is_feeding(l->graph, s) && s->by != l->thread;
    }
    return left && told && told + LATELY_NS >= at && lane->until <= told + LATELY_NS && !fed &&
           waited >= (lane->until - lane->begin) / LIFE * (LIFE - 1) &&
           fed_by(l, thread) <= FED_MOST;
}

/*
 * Whether the thread's last wait ended just when another thread came to join it, at `at`: that one
 * had told it to stop. The end may be off by a part of the wait's length, and by a larger part if
 * the other is known to have sent something just before.
 */
static bool rested_until(const struct look *l, uint32_t thread, uint64_t at)
{
    enum { PART = 32, PART_IF_SENT = 4 };
    struct gt_lane_step rest;
    if (!gt_rest_before(l->graph, thread, at, &rest))
        return false;
    uint64_t off = rest.to > at ? rest.to - at : at - rest.to;
    return gt_step_is_open(&rest) || off <= (rest.to - rest.from) / PART ||
           gt_rest_was_asked(l->graph, l->thread, at, &rest, PART_IF_SENT);
}

/* Whether the thread went on until its creator, which came to join it at `at`, told it to stop. */
static bool stops_on_demand(struct look *l, uint32_t thread, uint64_t at)
{
    return was_told_to_stop(l, thread, at) || waited_to_be_told(l, thread, at) ||
           was_woken_to_stop(l, thread, at) || rested_until(l, thread, at);
}

/* Joins without a wait ------------------------------------------------------------------------- */

static uint64_t begin_of(const struct look *l, const struct child *child)
{
    return l->graph->lane[child->thread].begin;
}

static void add_pending(struct look *l, struct child *child)
{
    size_t i = l->pendings;
    (void)GT_ADD(l->pending, l->pendings);
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

/* Joins the pending children that began at `since` or later: the thread goes on at `at`. */
static void join_pending(struct look *l, uint64_t since, uint64_t arrival, uint64_t at)
{
    for (; l->pendings && begin_of(l, l->pending[l->pendings - 1]) >= since; l->pendings--) {
        const struct child *it = l->pending[l->pendings - 1];
        uint64_t came = arrival < it->until ? arrival : it->until;
        if (!stops_on_demand(l, it->thread, came))
            l->graph->lane[it->thread].joined = at;
    }
}

/* When the thread's last join before `at` was over. */
static uint64_t last_over(const struct look *l, uint64_t at)
{
    size_t n = gt_count_up_to(l->over, l->overs, sizeof *l->over, sizeof at, at);
    return n ? l->over[n - 1] : 0;
}

/* All of it ------------------------------------------------------------------------------------ */

/*
 * A thread may be joined twice: after its last post comes its end, after which Python joins it once
 * more. It was told to stop if it was by the first time.
 *
 * With the thread that is joined go the children created since the join before it was created.
 * Children created earlier are joined with others, later.
 */
static void look_at_join(struct look *l, const struct gt_lane_step *s)
{
    struct gt_lane *by = &l->graph->lane[s->by];
    l->arrival = l->series == by->thread->routine ? l->arrival : s->from;
    l->series = by->thread->routine;
    by->stopped = by->thread->ended && (by->stopped || !l->awaited[s->by]) &&
                  (stops_on_demand(l, s->by, l->arrival) ||
                   (s->from > l->arrival && keeps_own_time(l, s->by, s->from)));
    l->awaited[s->by] = true;
    end_children(l, s->to);
    join_pending(l, last_over(l, by->begin), l->arrival, s->to);
    *GT_ADD(l->over, l->overs) = s->to;
}

static void look_at_thread(struct look *l)
{
    GT_CURSOR(c, l->graph, l->thread);
    const struct gt_lane *lane = &l->graph->lane[l->thread];
    l->series = NULL;
    l->overs = l->pendings = 0;
    l->next = child_from(l, l->thread, 0);
    for (const struct gt_lane_step *s; lane->woken && (s = gt_cursor_next(&c));) {
        if (gt_joins_is_join(l->graph, l->thread, s))
            look_at_join(l, s);
        else if (reaps(l->graph, s))
            l->graph->lane[s->by].stopped = rested_until(l, s->by, s->from);
        else if (s->kind != GT_SCHED && s->to - s->from >= SOON_NS)
            l->series = NULL;
    }
    end_children(l, lane->until);
    join_pending(l, 0, lane->until, lane->until);
}

void gt_joins_find(struct gt_graph *graph)
{
    struct look l = {.graph = graph};
    find_children(&l);
    l.awaited = gt_need(calloc(graph->lanes + 1, sizeof *l.awaited));
    l.place = gt_need(calloc(graph->spots + 1, sizeof *l.place));
    for (l.thread = 0; l.thread < graph->lanes; l.thread++)
        look_at_thread(&l);
    for (size_t i = 0; i < graph->lanes; i++)
        graph->lane[i].joined = l.awaited[i] ? 0 : graph->lane[i].joined;
    free(l.child);
    free(l.fed);
    free(l.awaited);
    free(l.place);
    free(l.over);
    free(l.pending);
}

size_t gt_joins_alike(const struct gt_graph *graph, uint32_t *first)
{
    size_t n = 0;
    for (uint32_t i = (uint32_t)graph->lanes; i--;) {
        bool alike = graph->lane[i].stopped && graph->lane[i].alike;
        *first = alike ? i : *first;
        n += alike;
    }
    return n;
}

bool gt_joins_is_rest(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    if (s->by == GT_NOBODY || !graph->lane[s->by].stopped)
        return false;
    const struct gt_spot *spot = &graph->spot[s->spot];
    return reaps(graph, s) ||
           (s->kind == GT_SYNC && (spot->locks || spot->joins || is_last(&graph->lane[s->by], s)));
}
