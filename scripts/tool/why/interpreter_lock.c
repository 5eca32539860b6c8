/* See interpreter_lock.h. */
#include "interpreter_lock.h"

#include "encoder/read/need.h"

struct look {
    const struct gt_sections *sections;
    struct gt_memo ns; /* by section */
    struct gt_gil_use use;
};

static void add_part(void *arg, const struct gt_section_part *part)
{
    struct look *l = arg;
    uint64_t ns = part->to - part->from;
    if (l->sections->at[part->section].kind == GT_SCHED)
        return;
    uint64_t *sum = gt_need(gt_memo_at(&l->ns, part->section + UINT64_C(1)));
    *sum += ns;
    l->use.all += ns;
    if (*sum > l->use.ns) {
        l->use.ns = *sum;
        l->use.section = part->section;
    }
}

static void add_hold(struct look *l, struct gt_sections *sections, struct gt_cursor *c,
                     uint64_t from, uint64_t to)
{
    const struct gt_lane_step *s = gt_cursor_from(c, from);
    for (; s && s->from < to; s = gt_cursor_next(c))
        gt_sections_split(sections, c->thread, s, s->from > from ? s->from : from,
                          s->to < to ? s->to : to, add_part, l);
}

struct gt_gil_use gt_gil_use_of(struct gt_sections *sections, uint32_t lock, uint64_t from,
                                uint64_t to)
{
    struct look l = {.sections = sections, .use = {.section = sections->unknown}};
    for (uint32_t i = 0; i < sections->graph->lanes; i++) {
        const struct gt_lane *lane = &sections->graph->lane[i];
        GT_CURSOR(c, sections->graph, i);
        for (size_t k = gt_lane_hold_after(lane, from); k < lane->holds; k++) {
            const struct gt_lock_hold *h = &lane->hold[k];
            if (h->lock == lock && h->from < to)
                add_hold(&l, sections, &c, h->from > from ? h->from : from,
                         h->to < to ? h->to : to);
        }
    }
    gt_memo_free(&l.ns);
    return l.use;
}
