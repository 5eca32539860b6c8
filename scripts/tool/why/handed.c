/* See handed.h. */
#include "handed.h"

#include "partners.h"
#include "reaped.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>

enum {
    SAMPLE = 64,          /* waits of a place that are examined */
    LEAST_WAITS = 8,      /* of the sample, long enough to tell; */
    LEAST_OF_OTHERS = 4,  /* for threads of other processes, which answer through a pipe */
    PLACES_MOST = 32,     /* places that are looked at */
    KINDS_MOST = 32,      /* routines of threads */
    THREADS_MOST = 128,   /* threads */
    LOOKS_MOST = 4000000, /* looks at a thread, for all waits: some 0.3 us each */
    LEAST_PART = 100,     /* the waits of a place take at least this fraction of the run */
    HITS_PERCENT = 75,    /* at least so many waits end just after a candidate was active; */
    CHANCE_PERCENT = 25,  /* at most so many checked moments inside waits do so by chance; */
    CHANCE_OF_FEW = 13,   /* and of fewer waits than LEAST_WAITS */
    SOON_NS = 32000,      /* "just after": this long, doubled */
    SOONS = 7,            /* so many times, for a busy machine */
    LENGTH_OF_SOON = 6,   /* a wait must be so many times longer than that to tell anything */
    CHECKS = 2,
};

/*
 * Where in a wait the chance is checked, in percent. Uneven parts, as something else may end at
 * even ones.
 */
static const uint64_t check_percent[CHECKS] = {37, 61};

struct wait {
    uint64_t from, to;
    uint32_t thread;
};

struct place {
    uint32_t spot;
    uint64_t waits;
    size_t n;
    struct wait sample[SAMPLE];
    const char *routine; /* of the threads that end its waits; NULL: not known */
    uint64_t soon;
};

struct look {
    struct gt_graph *graph;
    struct gt_cursor *cursor; /* of each thread */
    struct gt_guesses *found; /* by thread */
    struct place *place;
    size_t places;
    uint32_t *place_of; /* by spot: index + 1, or 0 */
    const char **kind;  /* routines of threads */
    size_t kinds;
    uint64_t looks; /* looks that the accepted places will take */
};

/* Whether another thread of the process may end a wait there by a call that no event names. */
static bool is_handed(const struct gt_spot *spot)
{
    static const char *const calls[] = {"eventfd", "flock", "lockf", "fcntl", "write",
                                        "send",    "mq_",   "msg",   "sem",   NULL};
    const char *call = gt_leaf_of(spot->stack);
    return !spot->runs && (gt_is_poll(call) || gt_is_read(call) || gt_is_accept(call) ||
                           gt_begins_with(call + strspn(call, "_"), calls));
}

static bool may_be(const struct gt_lane_step *s)
{
    return s->by == GT_NOBODY && s->ended && s->kind != GT_RUNNING && s->kind != GT_SCHED;
}

static void find_places(struct look *l)
{
    const struct gt_graph *graph = l->graph;
    l->place = gt_need(calloc(PLACES_MOST, sizeof *l->place));
    l->place_of = gt_need(calloc(graph->spots + 1, sizeof *l->place_of));
    for (uint32_t i = 0; i < graph->spots && l->places < PLACES_MOST; i++) {
        const struct gt_spot *its = &graph->spot[i];
        if (its->alone_ns * LEAST_PART < graph->trace.ns || !is_handed(its))
            continue;
        if (its->alone * graph->lanes > LOOKS_MOST || graph->lanes > THREADS_MOST) {
            l->graph->unasked += its->alone;
        } else {
            l->place[l->places++].spot = i;
            l->place_of[i] = (uint32_t)l->places;
        }
    }
}

static void find_kinds(struct look *l)
{
    const struct gt_graph *graph = l->graph;
    l->kind = gt_need(calloc(KINDS_MOST + 1, sizeof *l->kind));
    for (uint32_t i = 0; i < graph->lanes && l->kinds <= KINDS_MOST; i++) {
        size_t k = 0;
        while (k < l->kinds && l->kind[k] != graph->lane[i].thread->routine)
            k++;
        if (k == l->kinds && l->kinds++ < KINDS_MOST)
            l->kind[k] = graph->lane[i].thread->routine;
    }
}

/* Calls fn with each wait at the places. */
static void each_wait(struct look *l, void (*fn)(struct look *, struct place *, struct wait))
{
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        GT_EACH_STEP(s, l->graph, i) {
            if (l->place_of[s->spot] && may_be(s))
                fn(l, &l->place[l->place_of[s->spot] - 1], (struct wait){s->from, s->to, i});
        }
    }
}

/* Takes the first waits, then fewer and fewer: a sample of the whole run. */
static void sample(struct look *l, struct place *place, struct wait wait)
{
    (void)l;
    uint64_t i = place->waits++;
    if (i < SAMPLE)
        place->sample[place->n++] = wait;
    else if ((i = gt_hash_mix(0, i) % place->waits) < SAMPLE)
        place->sample[i] = wait;
}

/* The least gt_since_active() of all threads with that routine except the waiter. *by: the thread.
 */
static uint64_t nearest(struct look *l, const char *routine, const struct wait *wait, uint64_t at,
                        uint32_t *by, uint64_t *until)
{
    uint64_t least = UINT64_MAX, end;
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        if (i == wait->thread || l->graph->lane[i].thread->routine != routine)
            continue;
        uint64_t ns = gt_since_active(&l->cursor[i], wait->from, at, &end);
        if (ns < least) {
            least = ns;
            *by = i;
            *until = end;
        }
    }
    return least;
}

struct tally {
    uint64_t waits[SOONS], hits[SOONS], chance[SOONS];
};

static void count(struct tally *t, const struct wait *wait, uint64_t gap,
                  const uint64_t check[CHECKS])
{
    for (int i = 0; i < SOONS; i++) {
        uint64_t soon = (uint64_t)SOON_NS << i;
        if (wait->to - wait->from < soon * LENGTH_OF_SOON)
            continue;
        t->waits[i]++;
        t->hits[i] += gap <= soon;
        for (int k = 0; k < CHECKS; k++)
            t->chance[i] += check[k] <= soon;
    }
}

/*
 * Equal threads are also active at the same time because one of them gives a lock to the next. So a
 * routine fits worse, by this part, if the waiters have it too. At a place with a busy name, which
 * may be a lock's, it does not fit at all.
 */
#define OF_EQUALS 0.05

/* Whether no thread of that routine is of the waiter's process. */
static bool is_of_others(const struct look *l, const struct place *place, const char *routine)
{
    const struct gt_graph *graph = l->graph;
    const struct gt_thread_state *waiter = graph->lane[place->sample[0].thread].thread;
    uint32_t i = 0;
    while (i < graph->lanes && (graph->lane[i].thread->routine != routine ||
                                gt_is_of_other_process(graph->lane[i].thread, waiter)))
        i++;
    return i == graph->lanes;
}

static bool is_of_waiters(const struct look *l, const struct place *place, const char *routine)
{
    return l->graph->lane[place->sample[0].thread].thread->routine == routine;
}

/*
 * Takes threads of that routine as the place's wakers if they fit more often than chance, and
 * better than *best.
 */
static void judge(const struct look *l, struct place *place, const char *routine,
                  const struct tally *t, double *best)
{
    bool equals = is_of_waiters(l, place, routine);
    uint64_t least = is_of_others(l, place, routine) ? LEAST_OF_OTHERS : LEAST_WAITS;
    for (int i = 0; i < SOONS; i++) {
        uint64_t chance = t->waits[i] < LEAST_WAITS ? CHANCE_OF_FEW : CHANCE_PERCENT;
        if (t->waits[i] < least || t->hits[i] * 100 < t->waits[i] * HITS_PERCENT ||
            t->chance[i] * 100 > t->waits[i] * CHECKS * chance)
            continue;
        double more = ((double)t->hits[i] - (double)t->chance[i] / CHECKS) / (double)t->waits[i];
        more -= equals ? OF_EQUALS : 0;
        if (more > *best) {
            *best = more;
            place->routine = routine;
            place->soon = (uint64_t)SOON_NS << i;
        }
    }
}

static void find_givers(struct look *l, struct place *place)
{
    double best = 0;
    uint64_t looks = place->waits * l->graph->lanes;
    if (l->looks + looks > LOOKS_MOST)
        l->graph->unasked += place->waits;
    if (place->n < LEAST_OF_OTHERS || l->looks + looks > LOOKS_MOST)
        return;
    for (size_t k = 0; k < l->kinds; k++) {
        struct tally tally = {0};
        if (l->graph->spot[place->spot].busy && is_of_waiters(l, place, l->kind[k]))
            continue;
        for (size_t i = 0; i < place->n; i++) {
            const struct wait *w = &place->sample[i];
            uint64_t until, check[CHECKS];
            uint32_t by;
            for (int n = 0; n < CHECKS; n++)
                check[n] =
                    nearest(l, l->kind[k], w, w->from + (w->to - w->from) * check_percent[n] / 100,
                            &by, &until);
            count(&tally, w, nearest(l, l->kind[k], w, w->to, &by, &until), check);
        }
        judge(l, place, l->kind[k], &tally, &best);
    }
    l->looks += place->routine ? looks : 0;
}

static void note_giver(struct look *l, struct place *place, struct wait wait)
{
    struct gt_guesses *found = &l->found[wait.thread];
    uint64_t until = 0, most = (wait.to - wait.from) / 2;
    uint32_t by = GT_NOBODY;
    most = most > place->soon * GT_OUTLIER ? most : place->soon * GT_OUTLIER;
    if (!place->routine || nearest(l, place->routine, &wait, wait.to, &by, &until) > most)
        return;
    *GT_ADD(found->at, found->n) = (struct gt_guess){
        wait.from, wait.to, {until, by, GT_NOBODY, true}, (uint32_t)(place - l->place)};
}

static void find_partners(struct look *l)
{
    uint64_t soon[PLACES_MOST];
    for (size_t i = 0; i < l->places; i++)
        soon[i] = l->place[i].soon;
    gt_partners_find(l->graph, l->cursor, l->found, soon, l->places);
}

/* Stores the result in the lanes. No cursor is in use any more. */
static void tell(struct look *l)
{
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        struct gt_guesses *found = &l->found[i];
        struct gt_handed *handed = gt_need(malloc((found->n + 1) * sizeof *handed));
        for (size_t k = 0; k < found->n; k++) {
            handed[k] = found->at[k].giver;
            gt_graph_note_guess(l->graph, l->place[found->at[k].place].spot, handed[k].by);
        }
        l->graph->inferred += found->n;
        gt_lane_hand(&l->graph->lane[i], handed, found->n);
        free(found->at);
    }
}

void gt_handed_find(struct gt_graph *graph)
{
    struct look l = {.graph = graph};
    find_places(&l);
    find_kinds(&l);
    if (l.places && graph->lanes > 1 && l.kinds <= KINDS_MOST) {
        l.cursor = gt_cursors_open(graph);
        l.found = gt_need(calloc(graph->lanes, sizeof *l.found));
        each_wait(&l, sample);
        for (size_t i = 0; i < l.places; i++)
            find_givers(&l, &l.place[i]);
        each_wait(&l, note_giver);
        find_partners(&l);
        gt_cursors_close(l.cursor);
        tell(&l);
    }
    free(l.found);
    free(l.kind);
    free(l.place);
    free(l.place_of);
}
