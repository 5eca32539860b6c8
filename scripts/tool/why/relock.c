/* See relock.h. */
#include "relock.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    LEAST_NS = 10000,   /* a shorter delay is a wake-up; holds are not recorded that exactly */
    TAKEN_NS = 50000,   /* at most so long from going on with a lock to its recorded hold */
    SOON_NS = 20000000, /* a file's lock was given up at most so long before the wait was over: else
                           a process that is not recorded held it then */
    GONE_NS = 1000000,  /* a holder that does no more for so long gives the lock up by its end, */
    LATE_NS = 200000000, /* which takes at most so long: the tracer writes the file before */
};

/* A delay, or the rest of a wait, that led to a hold of the lock. */
struct delay {
    uint64_t from, to;
    uint32_t thread, lock;
    bool whole;   /* instead: a wait for the lock, which no event says that a thread ended */
    bool of_file; /* instead: a call that took the lock of a file */
};

/* The end of a hold. */
struct end {
    uint64_t at;
    uint32_t lock, thread;
};

struct look {
    struct gt_graph *graph;
    struct delay *delay;
    struct end *end; /* of the locks of these delays, sorted by lock, then by time */
    size_t delays, ends;
};

static void add_delay(struct look *l, struct delay delay)
{
    *GT_ADD(l->delay, l->delays) = delay;
}

/* The lock that the thread held from the end of this step on, or GT_NOBODY. */
static uint32_t lock_after(const struct gt_lane *lane, const struct gt_lane_step *s)
{
    struct gt_hold_walk walk = {0};
    for (const struct gt_lock_hold *h; (h = gt_lane_next_hold(lane, s->to, &walk));) {
        if (h->from > s->from && h->from <= s->to + TAKEN_NS)
            return h->lock;
    }
    return GT_NOBODY;
}

/* The delays from `first` on are one chain, whose last step this is: they were for one lock. */
static void end_chain(struct look *l, size_t first, const struct gt_lane *lane,
                      const struct gt_lane_step *last)
{
    uint32_t lock = first < l->delays ? lock_after(lane, last) : GT_NOBODY;
    l->delays = lock == GT_NOBODY ? first : l->delays;
    for (size_t i = first; i < l->delays; i++)
        l->delay[i].lock = lock;
}

/*
 * Whether a wait for a lock, which no event says that a thread ended, was over because the thread
 * had the lock. So it is with the GIL, which a thread may find free when it looks again after the
 * switch interval. Of other locks the thread may have given up.
 */
static bool got_lock(const struct gt_graph *graph, const struct gt_lane *lane,
                     const struct gt_lane_step *s)
{
    return s->by == GT_NOBODY && s->ended && gt_graph_is_lock_wait(graph, s) &&
           (gt_lock_is_gil(graph->lock[s->lock]) || lock_after(lane, s) == s->lock);
}

/*
 * The lock of a file that the call has waited for, or GT_NOBODY. A long hold may seem to begin
 * later than it did.
 */
static uint32_t lock_of_file(const struct gt_graph *graph, const struct gt_lane *lane,
                             const struct gt_lane_step *s)
{
    if (!graph->spot[s->spot].of_file || !s->ended || s->by != GT_NOBODY ||
        s->to - s->from < LEAST_NS)
        return GT_NOBODY;
    struct gt_hold_walk walk = {0};
    for (const struct gt_lock_hold *h; (h = gt_lane_next_hold(lane, s->to, &walk));) {
        uint64_t most = TAKEN_NS + gt_hold_slack(h);
        if (h->from > s->from && h->from <= s->to + most &&
            gt_lock_is_of_file(graph->lock[h->lock]))
            return h->lock;
    }
    return GT_NOBODY;
}

static void find_delays(struct look *l, uint32_t thread)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    uint32_t woken = GT_NOBODY; /* the spot of the wait that another thread has ended */
    struct gt_lane_step last = {0};
    size_t first = l->delays;
    GT_EACH_STEP(s, l->graph, thread) {
        bool by_other = s->kind == GT_SYNC && s->by != GT_NOBODY;
        bool again = by_other && woken == s->spot && !gt_graph_is_lock_wait(l->graph, s);
        if (woken != GT_NOBODY && (s->kind == GT_SCHED || again)) {
            if (again || s->to - s->from >= LEAST_NS)
                add_delay(l, (struct delay){s->from, s->to, thread, GT_NOBODY, false, false});
            last = *s;
            continue;
        }
        end_chain(l, first, lane, &last);
        if (got_lock(l->graph, lane, s))
            add_delay(l, (struct delay){s->from, s->to, thread, s->lock, true, false});
        first = l->delays;
        woken = by_other ? s->spot : GT_NOBODY;
    }
    end_chain(l, first, lane, &last);
}

static void find_calls(struct look *l, uint32_t thread)
{
    GT_EACH_STEP(s, l->graph, thread) {
        uint32_t lock = lock_of_file(l->graph, &l->graph->lane[thread], s);
        if (lock != GT_NOBODY)
            add_delay(l, (struct delay){s->from, s->to, thread, lock, false, true});
    }
}

GT_ORDER(by_lock, struct end, GT_UP(lock) ?: GT_UP(at))

static void find_ends(struct look *l)
{
    const struct gt_graph *graph = l->graph;
    bool *wanted = gt_need(calloc(graph->locks + 1, sizeof *wanted));
    for (size_t i = 0; i < l->delays; i++)
        wanted[l->delay[i].lock] = true;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        for (size_t k = 0; k < graph->lane[i].holds; k++) {
            const struct gt_lock_hold *h = &graph->lane[i].hold[k];
            if (!wanted[h->lock])
                continue;
            *GT_ADD(l->end, l->ends) = (struct end){h->to, h->lock, i};
        }
    }
    if (l->ends)
        qsort(l->end, l->ends, sizeof *l->end, by_lock);
    free(wanted);
}

/* The last release of the lock by another thread during the delay; NULL: there is none. */
static const struct end *release_in(const struct look *l, const struct delay *d)
{
    size_t low = 0, high = l->ends;
    while (low < high) { /* the number of ends up to that of the delay */
        size_t middle = low + (high - low) / 2;
        const struct end *e = &l->end[middle];
        if (e->lock < d->lock || (e->lock == d->lock && e->at <= d->to))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low && l->end[low - 1].lock == d->lock && l->end[low - 1].at > d->from; low--) {
        if (l->end[low - 1].thread != d->thread)
            return &l->end[low - 1];
    }
    return NULL;
}

/* Adds the waits of one thread: its delays follow each other in `delay`. */
static void add_waits(struct look *l, size_t first, size_t end)
{
    struct gt_handed *found = NULL;
    size_t n = 0;
    for (size_t i = first; i < end; i++) {
        const struct end *e = release_in(l, &l->delay[i]);
        if (!e)
            continue;
        bool ends = l->delay[i].of_file && l->graph->lane[e->thread].until < e->at + GONE_NS;
        if (l->delay[i].of_file && l->delay[i].to - e->at > (ends ? LATE_NS : SOON_NS))
            continue;
        uint32_t lock = l->delay[i].whole ? GT_NOBODY : e->lock;
        *GT_ADD(found, n) =
            (struct gt_handed){.at = e->at, .by = e->thread, .lock = lock, .unseen = ends};
    }
    gt_lane_hand(&l->graph->lane[l->delay[first].thread], found, n);
}

static void find(struct gt_graph *graph, void (*find_in)(struct look *l, uint32_t thread))
{
    struct look l = {.graph = graph};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (graph->lane[i].holds)
            find_in(&l, i);
    }
    find_ends(&l);
    for (size_t i = 0, end; i < l.delays; i = end) {
        for (end = i + 1; end < l.delays && l.delay[end].thread == l.delay[i].thread;)
            end++;
        add_waits(&l, i, end);
    }
    free(l.delay);
    free(l.end);
}

void gt_relock_find(struct gt_graph *graph)
{
    find(graph, find_delays);
}

void gt_relock_find_of_files(struct gt_graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->locks && !any; i++)
        any = gt_lock_is_of_file(graph->lock[i]);
    if (any)
        find(graph, find_calls);
}
