/* See polls.h. */
#include "polls.h"

enum {
    LEAST_SERIES = 5,
    FITS_PERCENT = 75,
    SLACK_NS = 200000, /* from the end of a sleep to the wake-up, at most */
};

/* How many wake-ups by the thread followed a sleep there, and for how many of them the sleep fits.
 */
struct tally {
    uint64_t series, fit;
};

/* The thread's last step at that spot that ended before `at`. */
static struct gt_lane_step last_sleep(struct gt_cursor *c, uint32_t spot, uint64_t since,
                                      uint64_t at)
{
    struct gt_lane_step found = {0};
    for (const struct gt_lane_step *s = gt_cursor_from(c, since); s && s->to <= at;
         s = gt_cursor_next(c)) {
        if (s->spot == spot && s->kind != GT_SCHED)
            found = *s;
    }
    return found;
}

static struct tally fits(const struct gt_program *p, uint32_t thread, uint32_t spot)
{
    const struct gt_thread_role *role = &p->role[thread];
    GT_CURSOR(c, p->sections->graph, thread);
    struct tally tally = {0};
    uint64_t before = p->from;
    for (size_t i = 0; i < role->edges; i++) {
        const struct gt_edge *e = &p->edge[role->first_edge + i];
        struct gt_lane_step sleep = last_sleep(&c, spot, before, e->at);
        tally.series += sleep.to > before;
        tally.fit += sleep.to > before && e->since + SLACK_NS >= sleep.from && e->since <= sleep.to;
        before = e->at;
    }
    return tally;
}

const struct gt_place_waits *gt_polls_find(struct gt_program *p, const struct gt_survey *survey)
{
    const struct gt_place_waits *found = NULL;
    for (uint32_t i = 0; i < p->sections->graph->spots; i++) {
        const struct gt_place_waits *place = &survey->place[i];
        if (place->threads > 1 || !gt_survey_is_poll(survey, p->sections, GT_NOBODY, i) ||
            (found && found->ns > place->ns))
            continue;
        struct tally tally = fits(p, place->thread, i);
        if (tally.series < LEAST_SERIES || tally.fit * 100 < tally.series * FITS_PERCENT)
            continue;
        found = place;
        p->poller = place->thread;
        p->poll = place->section;
    }
    return found;
}
