/* See path.h. */
#include "path.h"

#include "joins.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct gt_path *path;
    struct gt_sections *sections;
    struct gt_cursor *cursor; /* of each thread */
    uint32_t thread;
    uint32_t waiter;  /* for a thread that was told to stop, or GT_NOBODY: */
    uint64_t arrival; /* since then; the path goes on there */
};

static const char *name_of(const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_thread_state *t = graph->lane[thread].thread;
    return *t->name ? t->name : t->routine;
}

static struct gt_path_row *row_of(const struct walk *w, uint32_t section)
{
    struct gt_path *path = w->path;
    uint64_t *slot = gt_need(gt_memo_at(&path->by_section, section + 1u));
    if (!*slot) {
        path->row = gt_need_room(path->row, path->n, &path->room, sizeof *path->row);
        path->row[path->n] =
            (struct gt_path_row){.section = section, .thread = w->thread, .alike = true};
        *slot = ++path->n;
    }
    return &path->row[*slot - 1];
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    const struct walk *w = arg;
    const struct gt_graph *graph = w->sections->graph;
    struct gt_path_row *row = row_of(w, part->section);
    uint64_t ns = part->to - part->from;
    uint64_t *seen =
        gt_need(gt_memo_at(&w->path->threads, (part->section + UINT64_C(1)) << 32 | w->thread));
    if (!*seen) {
        *seen = 1;
        row->threads++;
        row->alike &= strcmp(name_of(graph, row->thread), name_of(graph, w->thread)) == 0;
    }
    row->ns += ns;
    row->count++;
    if (ns > row->longest) {
        row->longest = ns;
        row->longest_at = part->from;
    }
    w->path->ns += ns;
    w->path->by_thread[w->thread] += ns;
    w->path->by_kind[w->sections->at[part->section].kind] += ns;
    w->path->stretches++;
}

static void watch(const struct walk *w, uint64_t from, uint64_t to)
{
    struct gt_path *path = w->path;
    if (from < path->watch && path->watch <= to)
        path->watch_thread = w->thread;
}

static void add_unknown(struct walk *w, uint64_t from, uint64_t to)
{
    add_part(w, &(struct gt_section_part){from, to, w->sections->unknown});
    watch(w, from, to);
}

/* Who let the thread go on that has no step before that time: it had just been created, or ended.
 */
static uint32_t creator_of(const struct gt_graph *graph, uint32_t thread, uint64_t at)
{
    const struct gt_lane *lane = &graph->lane[thread];
    const struct gt_thread_state *maker = lane->thread->maker;
    return maker && at <= lane->begin && maker->number != thread ? maker->number : GT_NOBODY;
}

static void note_delay(struct walk *w, const struct gt_step *step, uint64_t from, uint64_t to)
{
    const struct gt_spot *spot = &w->sections->graph->spot[step->spot];
    if (step->kind == GT_SCHED && !spot->yields && to - from > GT_USUAL_WAKE_NS)
        gt_delays_add(spot->runs ? &w->path->preempted : &w->path->woken, from, to, step->p);
}

static void hop(struct walk *w, const struct gt_step *step, uint32_t other, uint64_t at)
{
    if (step && w->waiter == GT_NOBODY && gt_joins_is_rest(w->sections->graph, step)) {
        w->waiter = w->thread;
        w->arrival = step->from;
    }
    w->thread = other;
    w->path->seen[step ? step->spot : 0] += step ? at - step->from : 0;
    w->path->hops++;
}

/* How far back the path may stay with others: at the arrival it is back at the one who waited. */
static uint64_t limit_of(struct walk *w, uint64_t from, uint64_t at)
{
    if (w->waiter != GT_NOBODY && at <= w->arrival) {
        w->thread = w->waiter;
        w->waiter = GT_NOBODY;
    }
    return w->waiter != GT_NOBODY && w->arrival > from ? w->arrival : from;
}

/*
 * One thing before `at`: a stretch, or who ended the wait that it is in. hops: how many others were
 * asked since time last went back; where they wait for each other in a circle a wait is one.
 */
static uint64_t step_back(struct walk *w, uint64_t from, uint64_t at, size_t *hops)
{
    const struct gt_graph *graph = w->sections->graph;
    from = limit_of(w, from, at);
    struct gt_cursor *c = &w->cursor[w->thread];
    *c = c->graph ? *c : (struct gt_cursor){.graph = graph, .thread = w->thread};
    const struct gt_step *step = gt_cursor_seek(c, at);
    bool lost = *hops > graph->lanes;
    uint32_t other = step ? step->by : creator_of(graph, w->thread, at);
    if (other != GT_NOBODY && !lost) {
        hop(w, step, other, at);
        (*hops)++;
        return at;
    }
    const struct gt_lane *lane = &graph->lane[w->thread];
    uint64_t begin = step ? step->from : at > lane->until && lane->steps ? lane->until : 0;
    begin = begin > from ? begin : from;
    *hops = 0;
    if (step) {
        w->path->seen[step->spot] += at - begin;
        gt_sections_split(w->sections, w->thread, step, begin, at, add_part, w);
        note_delay(w, step, begin, at);
        watch(w, begin, at);
    } else {
        add_unknown(w, begin, at);
    }
    return begin;
}

void gt_path_add(struct gt_path *path, struct gt_sections *sections, uint32_t thread, uint64_t from,
                 uint64_t to)
{
    size_t lanes = sections->graph->lanes, hops = 0;
    struct walk w = {.path = path,
                     .sections = sections,
                     .cursor = gt_need(calloc(lanes, sizeof *w.cursor)),
                     .thread = thread,
                     .waiter = GT_NOBODY};
    if (!path->by_thread) {
        path->by_thread = gt_need(calloc(lanes + 1, sizeof *path->by_thread));
        path->seen = gt_need(calloc(sections->graph->spots + 1, sizeof *path->seen));
    }
    path->from = path->stretches ? path->from : from;
    path->to = to;
    while (to > from)
        to = step_back(&w, from, to, &hops);
    for (size_t i = 0; i < lanes; i++)
        gt_cursor_close(&w.cursor[i]);
    free(w.cursor);
}

void gt_path_free(struct gt_path *path)
{
    free(path->row);
    free(path->by_thread);
    free(path->seen);
    free(path->woken.at);
    free(path->preempted.at);
    gt_memo_free(&path->by_section);
    gt_memo_free(&path->threads);
    *path = (struct gt_path){0};
}

static int by_ns(const void *a, const void *b)
{
    const struct gt_path_row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->section < y->section ? -1 : x->section > y->section;
}

void gt_path_finish(struct gt_path *path)
{
    if (path->n)
        qsort(path->row, path->n, sizeof *path->row, by_ns);
    gt_memo_free(&path->by_section);
    for (size_t i = 0; i < path->n; i++)
        *(uint64_t *)gt_need(gt_memo_at(&path->by_section, path->row[i].section + 1u)) = i + 1;
}

uint64_t gt_path_ns_of(const struct gt_path *path, uint32_t section)
{
    uint64_t i = gt_memo_find(&path->by_section, section + 1u);
    return i ? path->row[i - 1].ns : 0;
}
