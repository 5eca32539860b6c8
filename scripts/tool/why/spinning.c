/* See spinning.h. */
#include "spinning.h"

#include "encoder/read/need.h"

#include <stdlib.h>

struct look {
    const struct gt_sections *sections;
    struct gt_spinning *of; /* by section */
    size_t n;
    uint32_t thread;
    uint64_t ran_ns;
};

static struct gt_spinning *at(struct look *l, uint32_t section)
{
    while (l->n <= section) {
        *GT_ADD(l->of, l->n) = (struct gt_spinning){.section = GT_NOBODY, .thread = GT_NOBODY};
    }
    return &l->of[section];
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    struct look *l = arg;
    const struct gt_section *section = &l->sections->at[part->section];
    uint64_t ns = part->to - part->from;
    if (section->kind != GT_RUNNING)
        return;
    l->ran_ns += ns;
    if (!section->spins)
        return;
    struct gt_spinning *its = at(l, part->section);
    its->threads += its->thread != l->thread;
    its->thread = l->thread;
    its->section = part->section;
    its->ns += ns;
    if (ns > its->longest) {
        its->longest = ns;
        its->longest_at = part->from;
    }
}

struct gt_spinning gt_spinning_find(struct gt_sections *sections, uint64_t from, uint64_t to)
{
    struct look l = {.sections = sections};
    struct gt_spinning most = {.section = GT_NOBODY};
    uint64_t all = 0;
    for (l.thread = 0; l.thread < sections->graph->lanes; l.thread++) {
        GT_EACH_STEP_IN(s, sections->graph, l.thread, from, to) {
            if (s->kind == GT_RUNNING)
                gt_sections_split(sections, l.thread, s, s->from > from ? s->from : from,
                                  s->to < to ? s->to : to, add_part, &l);
        }
    }
    for (size_t i = 0; i < l.n; i++) {
        all += l.of[i].ns;
        most = l.of[i].ns > most.ns ? l.of[i] : most;
    }
    most.all_ns = all;
    most.ran_ns = l.ran_ns;
    free(l.of);
    return most;
}

uint64_t gt_spinning_on(const struct gt_critical_path *path, const struct gt_sections *sections)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < path->n; i++) {
        const struct gt_section *s = &sections->at[path->row[i].section];
        ns += s->spins || gt_section_yields(s) ? path->row[i].ns : 0;
    }
    return ns;
}
