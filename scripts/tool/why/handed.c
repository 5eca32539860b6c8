/* See handed.h. */
#include "handed.h"

#include "scripts/tool/report/places.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE = 64,          /* waits of a place */
    LEAST_WAITS = 8,      /* of these, long enough to tell */
    PLACES_MOST = 32,     /* that are looked at */
    KINDS_MOST = 32,      /* of threads, */
    THREADS_MOST = 128,   /* and threads */
    LOOKS_MOST = 4000000, /* at threads, for all waits: some 0.3 us each */
    LEAST_PART = 100,     /* of the run that waits of a place take, all in all */
    HITS_PERCENT = 75,    /* waits over just after one of them did something; */
    CHANCE_PERCENT = 25,  /* and moments in the middle of waits for which that is so */
    SOON_NS = 32000,      /* what is just after: doubled, */
    SOONS = 7,            /* so many times, for a busy machine */
    OUTLIER = 4,          /* a single wait may be so much later */
    LENGTH_OF_SOON = 6,   /* how much longer than that a wait is, to tell anything */
    CHECKS = 2,
};

/* Moments in the middle of a wait, in percent: no even parts, at which something else may end. */
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
    const char *routine; /* of those who end its waits; NULL: not known */
    uint64_t soon;
};

/* What was found of a thread's waits. */
struct found {
    struct gt_handed *at;
    size_t n, room;
};

struct look {
    struct gt_graph *graph;
    struct gt_cursor *cursor; /* of each thread */
    struct found *found;      /* by thread */
    struct place *place;
    size_t places;
    uint32_t *place_of; /* by spot: index + 1, or 0 */
    const char **kind;  /* of threads: their routines */
    size_t kinds;
    uint64_t looks; /* that are to come */
};

/* What another thread of the process may end, by a call of which nothing is told. */
static bool is_handed(const struct gt_spot *spot)
{
    static const char *const calls[] = {
        "read",    "__read", "recv",    "__recv",  "poll",  "ppoll", "__poll", "select",
        "epoll_",  "accept", "eventfd", "pselect", "flock", "lockf", "fcntl",  "write",
        "__write", "send",   "__send",  "mq_",     "msg",   "sem"};
    const char *call = gt_leaf_of(spot->stack);
    for (size_t i = 0; !spot->runs && i < sizeof calls / sizeof *calls; i++) {
        if (strncmp(call, calls[i], strlen(calls[i])) == 0)
            return true;
    }
    return false;
}

static bool may_be(const struct gt_step *s)
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

/* Calls fn with each wait at those places. */
static void each_wait(struct look *l, void (*fn)(struct look *, struct place *, struct wait))
{
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        struct gt_cursor c = {.graph = l->graph, .thread = i};
        for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
            if (l->place_of[s->spot] && may_be(s))
                fn(l, &l->place[l->place_of[s->spot] - 1], (struct wait){s->from, s->to, i});
        }
        gt_cursor_close(&c);
    }
}

/* The first ones, and then fewer and fewer, from all of the run. */
static void sample(struct look *l, struct place *place, struct wait wait)
{
    (void)l;
    uint64_t i = place->waits++;
    if (i < SAMPLE)
        place->sample[place->n++] = wait;
    else if ((i = gt_hash_mix(0, i) % place->waits) < SAMPLE)
        place->sample[i] = wait;
}

/*
 * How long before that time, or after, the thread last began to do something, or was done with it:
 * UINT64_MAX: not since `from`. *until: up to when it could have ended the wait.
 */
static uint64_t since_active(struct look *l, uint32_t thread, uint64_t from, uint64_t at,
                             uint64_t *until)
{
    struct gt_cursor *c = &l->cursor[thread];
    *c = c->graph ? *c : (struct gt_cursor){.graph = l->graph, .thread = thread};
    const struct gt_lane *lane = &l->graph->lane[thread];
    uint64_t end = at < lane->until ? at : lane->until;
    const struct gt_step *s = end > lane->begin ? gt_cursor_seek(c, end) : NULL;
    while (s && s->kind != GT_RUNNING && s->from > from && s->from > lane->begin)
        s = gt_cursor_seek(c, s->from);
    if (!s || s->kind != GT_RUNNING || s->to <= from)
        return UINT64_MAX;
    *until = s->to < at ? s->to : at;
    if (s->to <= at)
        return at - s->to;
    return at - s->from < s->to - at ? at - s->from : s->to - at;
}

/* The least of that of all such threads, but the one that waits; *by: whose it is. */
static uint64_t nearest(struct look *l, const char *routine, const struct wait *wait, uint64_t at,
                        uint32_t *by, uint64_t *until)
{
    uint64_t least = UINT64_MAX, end;
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        if (i == wait->thread || l->graph->lane[i].thread->routine != routine)
            continue;
        uint64_t ns = since_active(l, i, wait->from, at, &end);
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

/* Whether it is threads of that kind, at least so much more often than by chance. */
static void judge(struct place *place, const char *routine, const struct tally *t, double *best)
{
    for (int i = 0; i < SOONS; i++) {
        if (t->waits[i] < LEAST_WAITS || t->hits[i] * 100 < t->waits[i] * HITS_PERCENT ||
            t->chance[i] * 100 > t->waits[i] * CHECKS * CHANCE_PERCENT)
            continue;
        double more = ((double)t->hits[i] - (double)t->chance[i] / CHECKS) / (double)t->waits[i];
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
    if (place->n < LEAST_WAITS || l->looks + looks > LOOKS_MOST)
        return;
    for (size_t k = 0; k < l->kinds; k++) {
        struct tally tally = {0};
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
        judge(place, l->kind[k], &tally, &best);
    }
    l->looks += place->routine ? looks : 0;
}

static void note_giver(struct look *l, struct place *place, struct wait wait)
{
    struct found *found = &l->found[wait.thread];
    uint64_t until = 0, most = (wait.to - wait.from) / 2;
    uint32_t by = GT_NOBODY;
    most = most > place->soon * OUTLIER ? most : place->soon * OUTLIER;
    if (!place->routine || nearest(l, place->routine, &wait, wait.to, &by, &until) > most)
        return;
    found->at = gt_need_room(found->at, found->n, &found->room, sizeof *found->at);
    found->at[found->n++] = (struct gt_handed){until, by};
}

/* Only when nobody looks at steps any more. */
static void tell(struct look *l)
{
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        struct gt_lane *lane = &l->graph->lane[i];
        gt_cursor_close(&l->cursor[i]);
        lane->handed = l->found[i].at;
        lane->handeds = l->found[i].n;
        lane->woken |= lane->handeds > 0;
        l->graph->inferred += lane->handeds;
    }
}

void gt_handed_find(struct gt_graph *graph)
{
    struct look l = {.graph = graph};
    find_places(&l);
    find_kinds(&l);
    if (l.places && graph->lanes > 1 && l.kinds <= KINDS_MOST) {
        l.cursor = gt_need(calloc(graph->lanes, sizeof *l.cursor));
        l.found = gt_need(calloc(graph->lanes, sizeof *l.found));
        each_wait(&l, sample);
        for (size_t i = 0; i < l.places; i++)
            find_givers(&l, &l.place[i]);
        each_wait(&l, note_giver);
        tell(&l);
    }
    free(l.found);
    free(l.cursor);
    free(l.kind);
    free(l.place);
    free(l.place_of);
}
