/* See timeline_json.h. */
#include "timeline_json.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/json.h"
#include "scripts/tool/report/select.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What a picture has room for, and about how many spans and path parts that is in the file. */
enum { THREADS_MOST = 40, SPANS_MOST = 24000, PATH_MOST = 3000 };

/* Stretches in a row that are too short to be drawn one by one. */
struct cluster {
    uint64_t from, to, count;
    uint64_t ns[GT_KINDS], longest[GT_KINDS];
    uint32_t section[GT_KINDS]; /* the section of the longest stretch of that kind */
};

struct timeline {
    struct gt_why *why;
    uint32_t *row; /* by thread: its row in the picture, or GT_NOBODY */
    struct order {
        uint32_t thread;
        uint64_t path_ns, work_ns;
    } * order;
    size_t rows, left_out;
    uint64_t slot;          /* ns: shorter stretches are put together */
    uint64_t at;            /* the end of what was written last */
    bool any;               /* whether something was written of this row */
    struct cluster cluster; /* not written yet */
    uint32_t *place;        /* sections in the order in which spans use them */
    size_t places;
    struct gt_memo place_of; /* by section + 1: its index + 1 */
};

/* Which threads ----------------------------------------------------------------------------------
 */

GT_ORDER(by_use, struct order, GT_DOWN(path_ns) ?: GT_DOWN(work_ns) ?: GT_UP(thread))

GT_ORDER(by_thread, struct order, GT_UP(thread))

static bool lives_in(const struct gt_why *why, const struct gt_lane *lane)
{
    return lane->steps && lane->begin < why->to && lane->until > why->from &&
           gt_select_named(lane->thread);
}

/* Threads of the critical path come first, then those that work most. Rows are in their order. */
static void choose_threads(struct timeline *t)
{
    const struct gt_why *why = t->why;
    size_t lanes = why->graph.lanes, n = 0;
    t->row = gt_need(malloc((lanes + 1) * sizeof *t->row));
    t->order = gt_need(calloc(lanes + 1, sizeof *t->order));
    for (uint32_t i = 0; i < lanes; i++) {
        t->row[i] = GT_NOBODY;
        if (lives_in(why, &why->graph.lane[i]))
            t->order[n++] = (struct order){i, why->path.by_thread[i], why->survey.work[i]};
    }
    qsort(t->order, n, sizeof *t->order, by_use);
    t->rows = n < THREADS_MOST ? n : THREADS_MOST;
    t->left_out = n - t->rows;
    qsort(t->order, t->rows, sizeof *t->order, by_thread);
    for (uint32_t i = 0; i < t->rows; i++)
        t->row[t->order[i].thread] = i;
}

/* Spans ------------------------------------------------------------------------------------------
 */

static uint32_t place_of(struct timeline *t, uint32_t section)
{
    uint64_t *slot = gt_need(gt_memo_at(&t->place_of, section + 1u));
    if (!*slot) {
        *GT_ADD(t->place, t->places) = section;
        *slot = t->places;
    }
    return (uint32_t)*slot - 1;
}

/* Four numbers: ns since the last span, ns, place, and how many stretches it is. */
static void put_span(struct timeline *t, uint64_t from, uint64_t to, uint32_t section,
                     uint64_t count)
{
    printf("%s%" PRIu64 ",%" PRIu64 ",%u,%" PRIu64, t->any ? "," : "", from - t->at, to - from,
           place_of(t, section), count);
    t->at = to;
    t->any = true;
}

static void put_cluster(struct timeline *t)
{
    const struct cluster *c = &t->cluster;
    int most = 0;
    for (int k = 0; k < GT_KINDS; k++)
        most = c->ns[k] > c->ns[most] ? k : most;
    if (c->count)
        put_span(t, c->from, c->to, c->section[most], c->count);
    t->cluster = (struct cluster){0};
}

static void add_to_cluster(struct timeline *t, const struct gt_section_part *part,
                           enum gt_kind kind)
{
    struct cluster *c = &t->cluster;
    uint64_t ns = part->to - part->from;
    if (c->count && part->from > c->to + t->slot)
        put_cluster(t);
    if (!c->count++)
        c->from = part->from;
    c->to = part->to;
    c->ns[kind] += ns;
    if (ns >= c->longest[kind]) {
        c->longest[kind] = ns;
        c->section[kind] = part->section;
    }
    if (c->to - c->from >= t->slot)
        put_cluster(t);
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    struct timeline *t = arg;
    if (part->to - part->from < t->slot) {
        add_to_cluster(t, part, t->why->sections.at[part->section].kind);
        return;
    }
    put_cluster(t);
    put_span(t, part->from, part->to, part->section, 1);
}

static void put_thread(struct timeline *t, const struct order *its)
{
    struct gt_why *why = t->why;
    const struct gt_lane *lane = &why->graph.lane[its->thread];
    printf("{\"id\":%" PRIu64, lane->thread->g);
    gt_json_text("thread", gt_name_of_one(&why->graph, its->thread).text);
    gt_json_number("begin_ns", lane->begin);
    gt_json_number("end_ns", lane->until);
    gt_json_number("path_ns", its->path_ns);
    gt_json_number("work_ns", its->work_ns);
    printf(",\"spans\":[");
    t->at = why->from;
    t->any = false;
    GT_EACH_STEP_IN(s, &why->graph, its->thread, why->from, why->to) {
        uint64_t from = s->from > why->from ? s->from : why->from;
        uint64_t to = s->to < why->to ? s->to : why->to;
        if (from < to)
            gt_sections_split(&why->sections, its->thread, s, from, to, add_part, t);
    }
    put_cluster(t);
    printf("]}");
}

static void put_places(const struct timeline *t)
{
    printf("],\n\"places\":[");
    for (size_t i = 0; i < t->places; i++) {
        const struct gt_section *s = &t->why->sections.at[t->place[i]];
        printf("%s{\"kind\":\"%s\"", i ? ",\n" : "", gt_kind_names[s->kind]);
        gt_json_text("name", gt_section_name(&t->why->sections, t->place[i]));
        gt_json_truth("lock", s->lock != GT_NOBODY);
        printf("}");
    }
}

/* The critical path
 * -------------------------------------------------------------------------------- */

/* Three numbers: when a part of the path begins, ns, and its row. A row that is not shown has none.
 */
static void put_path_part(struct timeline *t, uint32_t row, uint64_t from, uint64_t to)
{
    if (row == GT_NOBODY || from >= to)
        return;
    printf("%s%" PRIu64 ",%" PRIu64 ",%u", t->any ? "," : "", from, to - from, row);
    t->any = true;
}

/*
 * Parts of the path shorter than a slot join the part before: a picture cannot show them. That of a
 * server's run says nothing.
 */
static void put_path(struct timeline *t)
{
    const struct gt_why *why = t->why;
    const struct gt_trail_part *all = why->trail.at;
    uint64_t from = 0, slot = (why->to - why->from) / PATH_MOST;
    uint32_t row = GT_NOBODY;
    size_t n = why->pieces.n ? 0 : why->trail.n;
    printf("],\n\"path\":[");
    t->any = false;
    for (size_t i = n; i-- > 0;) { /* it was noted backwards */
        uint32_t its = t->row[all[i].thread];
        if (its == row || (all[i].to - all[i].from < slot && row != GT_NOBODY))
            continue;
        put_path_part(t, row, from, all[i].from);
        row = its;
        from = all[i].from;
    }
    if (n)
        put_path_part(t, row, from, all[0].to);
}

void gt_why_print_timeline(struct gt_why *why)
{
    struct timeline t = {.why = why};
    choose_threads(&t);
    t.slot = (why->to - why->from) / (SPANS_MOST / 2) * (t.rows ? t.rows : 1) + 1;
    printf(",\n\"timeline\":{\"slot_ns\":%" PRIu64, t.slot);
    gt_json_number("threads_left_out", t.left_out);
    printf(",\"threads\":[");
    for (size_t i = 0; i < t.rows; i++) {
        printf(i ? ",\n" : "\n");
        put_thread(&t, &t.order[i]);
    }
    put_places(&t);
    put_path(&t);
    printf("]}");
    free(t.row);
    free(t.order);
    free(t.place);
    gt_memo_free(&t.place_of);
}
