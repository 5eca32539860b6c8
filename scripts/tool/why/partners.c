/* See partners.h. */
#include "partners.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_WAITS = 8,
    SAMPLE = 64,          /* waits of a thread at a place that are examined */
    PARTNER_PERCENT = 90, /* of the examined waits: ended when the partner was active */
    OTHER_PERCENT = 75,   /* at most so many when another thread was */
};

struct look {
    struct gt_graph *graph;
    struct gt_guesses *of; /* by thread */
    const uint64_t *soon;  /* by place */
    size_t places;
    struct gt_cursor *cursor; /* of each thread */
    uint32_t *times;          /* by thread: scratch */
    uint32_t *partner;        /* by thread and place; GT_NOBODY: none */
};

uint64_t gt_since_active(struct gt_cursor *c, uint64_t from, uint64_t at, uint64_t *until)
{
    const struct gt_lane *lane = &c->graph->lane[c->thread];
    uint64_t end = at < lane->until ? at : lane->until;
    const struct gt_lane_step *s = end > lane->begin ? gt_cursor_seek(c, end) : NULL;
    if (s && s->to >= at && s->kind != GT_SCHED && c->graph->spot[s->spot].gives) {
        *until = at;
        return 0;
    }
    while (s && s->kind != GT_RUNNING && s->from > from && s->from > lane->begin)
        s = gt_cursor_seek(c, s->from);
    if (!s || s->kind != GT_RUNNING || s->to <= from)
        return UINT64_MAX;
    *until = s->to < at ? s->to : at;
    if (s->to <= at)
        return at - s->to;
    return at - s->from < s->to - at ? at - s->from : s->to - at;
}

/* Whether the thread waits for the other one at some place, and always for that one. */
static bool asks(const struct look *l, uint32_t thread, uint32_t other)
{
    for (size_t place = 0; place < l->places; place++) {
        if (l->partner[thread * l->places + place] == other)
            return true;
    }
    return false;
}

/* Counts the threads of the giver's routine that were active when that wait ended. */
static size_t count_active(struct look *l, const struct gt_guess *g)
{
    const char *routine = l->graph->lane[g->giver.by].thread->routine;
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        uint64_t until;
        if (l->graph->lane[i].thread->routine == routine &&
            gt_since_active(&l->cursor[i], g->from, g->to, &until) <= l->soon[g->place])
            l->times[i]++;
    }
    return 1;
}

/*
 * The thread that was active at the end of nearly all waits of the thread at the place. GT_NOBODY:
 * there is none, or another one was so nearly as often.
 */
static uint32_t usual_giver(struct look *l, uint32_t thread, uint32_t place)
{
    const struct gt_guesses *its = &l->of[thread];
    uint32_t most = 0, second = 0; /* how often: of two threads */
    uint32_t found = GT_NOBODY;
    size_t all = 0;
    memset(l->times, 0, l->graph->lanes * sizeof *l->times);
    for (size_t i = 0; i < its->n && all < SAMPLE; i++)
        all += its->at[i].place == place ? count_active(l, &its->at[i]) : 0;
    l->times[thread] = 0;
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        second = l->times[i] > most ? most : l->times[i] > second ? l->times[i] : second;
        found = l->times[i] > most ? i : found;
        most = l->times[i] > most ? l->times[i] : most;
    }
    bool alone = most * 100 >= all * PARTNER_PERCENT && second * 100 <= all * OTHER_PERCENT;
    return all >= LEAST_WAITS && alone ? found : GT_NOBODY;
}

/* The only thread that always waits for this one at some place; GT_NOBODY: none, or several. */
static uint32_t only_asker(struct look *l, uint32_t thread, uint32_t place)
{
    uint32_t found = GT_NOBODY;
    (void)place;
    for (uint32_t i = 0; i < l->graph->lanes; i++) {
        if (!asks(l, i, thread))
            continue;
        if (found != GT_NOBODY)
            return GT_NOBODY;
        found = i;
    }
    return found;
}

/*
 * If the partner was active at the end of nearly all waits of the thread at the place, it ended
 * these. Another thread that was active a little later does not change that. A partner that waits
 * for the thread in turn may have been active a little earlier.
 */
static bool prefer_partner(struct look *l, uint32_t thread, uint32_t place, uint32_t partner)
{
    struct gt_guesses *its = &l->of[thread];
    uint64_t late = l->soon[place] * GT_OUTLIER;
    uint64_t soon = asks(l, partner, thread) ? late : l->soon[place];
    uint64_t all = 0, with = 0;
    struct gt_handed *giver = gt_need(malloc((its->n + 1) * sizeof *giver));
    for (size_t i = 0; i < its->n; i++) {
        const struct gt_guess *g = &its->at[i];
        uint64_t until, gap = 0;
        giver[i] = g->giver;
        if (g->place != place)
            continue;
        if (g->giver.by != partner)
            gap = gt_since_active(&l->cursor[partner], g->from, g->to, &until);
        if (gap && gap <= late)
            giver[i] =
                (struct gt_handed){.at = until, .by = partner, .lock = GT_NOBODY, .guessed = true};
        all++;
        with += gap <= soon;
    }
    bool found = all && with * 100 >= all * PARTNER_PERCENT;
    for (size_t i = 0; found && i < its->n; i++)
        its->at[i].giver = giver[i];
    free(giver);
    return found;
}

/* candidate: names the thread that may be the partner at a place. */
static void find_partners(struct look *l, uint32_t thread,
                          uint32_t (*candidate)(struct look *, uint32_t, uint32_t))
{
    for (uint32_t place = 0; place < l->places; place++) {
        uint32_t *its = &l->partner[thread * l->places + place];
        uint32_t partner = *its == GT_NOBODY ? candidate(l, thread, place) : GT_NOBODY;
        if (partner != GT_NOBODY && prefer_partner(l, thread, place, partner))
            *its = partner;
    }
}

void gt_partners_find(struct gt_graph *graph, struct gt_cursor *cursor, struct gt_guesses *of,
                      const uint64_t *soon, size_t places)
{
    uint32_t lanes = (uint32_t)graph->lanes;
    struct look l = {.graph = graph, .of = of, .soon = soon, .places = places, .cursor = cursor};
    l.times = gt_need(calloc(lanes + 1, sizeof *l.times));
    l.partner = gt_need(malloc((lanes * places + 1) * sizeof *l.partner));
    for (size_t i = 0; i < lanes * places; i++)
        l.partner[i] = GT_NOBODY;
    for (uint32_t i = 0; i < lanes; i++)
        find_partners(&l, i, usual_giver);
    for (uint32_t i = 0; i < lanes; i++)
        find_partners(&l, i, only_asker);
    free(l.times);
    free(l.partner);
}
