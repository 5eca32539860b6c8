/* See critical_path.h. */
#include "critical_path.h"

#include "joins.h"
#include "rests.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct gt_critical_path *path;
    struct gt_sections *sections;
    struct gt_cursor *cursor; /* of each thread */
    uint32_t thread;
    uint32_t waiter;  /* the thread to which the path returns; GT_NOBODY: none. See is_passing */
    uint64_t arrival; /* when that thread began to wait: there the path returns to it */
    uint32_t asker;   /* the thread whose wait for input led to this one; GT_NOBODY: none */
    uint64_t asked;   /* when that wait began */
    bool guessed;     /* the path came to the thread by an inferred wake-up */
    bool open;        /* it is in a wait that the end of the trace cuts */
};

static const char *name_of(const struct gt_graph *graph, uint32_t thread)
{
    return gt_name_or_routine(graph->lane[thread].thread);
}

static struct gt_path_row *row_of(const struct walk *w, uint32_t section)
{
    struct gt_critical_path *path = w->path;
    uint64_t *slot = gt_need(gt_memo_at(&path->by_section, section + 1u));
    if (!*slot) {
        *GT_ADD(path->row, path->n) = (struct gt_path_row){
            .section = section, .thread = w->thread, .most = w->thread, .alike = true};
        *slot = path->n;
    }
    return &path->row[*slot - 1];
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    const struct walk *w = arg;
    const struct gt_graph *graph = w->sections->graph;
    struct gt_path_row *row = row_of(w, part->section);
    uint64_t ns = part->to - part->from;
    uint64_t *its =
        gt_need(gt_memo_at(&w->path->by_place, (part->section + UINT64_C(1)) << 32 | w->thread));
    if (!*its) {
        *its = 1;
        row->threads++;
        row->alike &= strcmp(name_of(graph, row->thread), name_of(graph, w->thread)) == 0;
    }
    *its += ns;
    if (*its > row->most_ns + 1) {
        row->most_ns = *its - 1;
        row->most = w->thread;
    }
    row->ns += ns;
    row->guessed += w->guessed ? ns : 0;
    row->open += w->open ? ns : 0;
    row->once += gt_lane_initialises(&graph->lane[w->thread], part->from) ? ns : 0;
    row->count++;
    gt_lengths_add(&row->lengths, ns);
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
    struct gt_critical_path *path = w->path;
    if (from < path->watch && path->watch <= to)
        path->watch_thread = w->thread;
}

static void note_trail(struct gt_path_trail *trail, uint32_t thread, uint64_t from, uint64_t to)
{
    struct gt_trail_part *last = trail->n ? &trail->at[trail->n - 1] : NULL;
    if (last && last->thread == thread && last->from == to) {
        last->from = from;
        return;
    }
    *GT_ADD(trail->at, trail->n) = (struct gt_trail_part){thread, from, to};
}

static void add_unknown(struct walk *w, uint64_t from, uint64_t to)
{
    add_part(w, &(struct gt_section_part){from, to, w->sections->unknown});
    watch(w, from, to);
}

/* The thread that created this one, if the path is back at that time; else GT_NOBODY. */
static uint32_t creator_of(const struct gt_graph *graph, uint32_t thread, uint64_t at)
{
    const struct gt_lane *lane = &graph->lane[thread];
    return at <= lane->created ? lane->creator : GT_NOBODY;
}

static void note_delay(struct walk *w, const struct gt_lane_step *step, uint64_t from, uint64_t to)
{
    const struct gt_spot *spot = &w->sections->graph->spot[step->spot];
    if (step->kind == GT_SCHED && !spot->yields && to - from > GT_USUAL_WAKE_NS)
        gt_delays_add(spot->runs ? &w->path->preempted : &w->path->woken, from, to, step->p);
}

/* Adds the wait, up to `at`, to the locks that its thread held meanwhile. */
static void note_across(struct walk *w, uint32_t thread, const struct gt_lane_step *step,
                        uint64_t at)
{
    struct gt_hold_walk walk = {0};
    const struct gt_lane *lane = &w->sections->graph->lane[thread];
    if (!lane->holds || gt_graph_is_lock_wait(w->sections->graph, step))
        return;
    for (const struct gt_lock_hold *h; (h = gt_lane_next_hold(lane, at - 1, &walk));) {
        struct gt_across *its = &w->path->across[h->lock];
        uint64_t from = h->from > step->from ? h->from : step->from;
        from = from > w->path->from ? from : w->path->from;
        uint64_t to = its->walk == w->path->walks && its->low < at ? its->low : at;
        if (h->from >= at || from >= to)
            continue;
        if (to - from > its->longest) {
            its->longest = to - from;
            its->section = gt_sections_of(w->sections, thread, step);
            its->by = step->by;
        }
        its->ns += to - from;
        its->guessed += step->guessed ? to - from : 0;
        its->low = from;
        its->walk = w->path->walks;
    }
}

/*
 * The path stays with a thread that found a question there when it came to it. It goes on with the
 * answer that the asking thread waited for before.
 */
static void note_answer_before(struct walk *w, const struct gt_question *q)
{
    enum { STEPS_BACK = 6 };
    struct gt_cursor *c = &w->cursor[q->by];
    const struct gt_lane_step *s = gt_cursor_seek(c, q->at);
    for (int i = 0; s && i < STEPS_BACK && s->by != q->reader; i++)
        s = gt_cursor_seek(c, s->from);
    if (s && s->by == q->reader)
        note_across(w, q->by, s, s->to);
}

static void note_questions(struct walk *w, uint64_t from, uint64_t to)
{
    const struct gt_graph *graph = w->sections->graph;
    size_t low = 0, high = graph->questions; /* low: the number of those before `to` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gt_question *q = &graph->question[middle];
        if (q->reader < w->thread || (q->reader == w->thread && q->at < to))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low && graph->question[low - 1].reader == w->thread; low--) {
        if (graph->question[low - 1].at < from)
            break;
        note_answer_before(w, &graph->question[low - 1]);
    }
}

/*
 * Whether the thread only slept before the step, and nobody asked it: a timer that happened to end
 * while another thread computed. The cursor of w->thread moves.
 */
static bool is_after_sleep(struct walk *w, const struct gt_lane_step *step)
{
    enum { STEPS_BACK = 4 };
    const struct gt_lane_step *s = gt_cursor_seek(&w->cursor[w->thread], step->from);
    for (int i = 0; s && i < STEPS_BACK && (s->kind == GT_RUNNING || s->kind == GT_SCHED); i++)
        s = gt_cursor_seek(&w->cursor[w->thread], s->from);
    return w->asker == GT_NOBODY && s && s->kind == GT_SLEEP;
}

/*
 * Whether only what the other thread did during the step counts. A thread that waits for its
 * interpreter's lock needs nothing of the thread that happens to have it.
 */
static bool is_passing(struct walk *w, const struct gt_lane_step *step)
{
    const struct gt_graph *graph = w->sections->graph;
    if (gt_graph_is_gil_wait(graph, step))
        return !is_after_sleep(w, step);
    return gt_joins_is_rest(graph, step);
}

static void hop(struct walk *w, const struct gt_lane_step *step, uint32_t other, uint64_t at)
{
    struct gt_lane_step its = step ? *step : (struct gt_lane_step){0}; /* the cursor may move */
    step = step ? &its : NULL;
    if (step && w->waiter == GT_NOBODY && is_passing(w, &its)) {
        w->waiter = w->thread;
        w->arrival = step->from;
    }
    if (step)
        note_across(w, w->thread, step, at);
    bool input = step && (step->kind == GT_NETWORK || step->kind == GT_SYSCALL);
    w->asker = input ? w->thread : GT_NOBODY;
    w->asked = input ? step->from : 0;
    w->guessed = step && step->guessed;
    w->thread = other;
    w->path->seen[step ? step->spot : 0] += step ? at - step->from : 0;
    w->path->hops++;
}

/* How far back the path may stay with other threads. At the arrival it returns to the waiter. */
static uint64_t limit_of(struct walk *w, uint64_t from, uint64_t at)
{
    if (w->waiter != GT_NOBODY && at <= w->arrival) {
        w->thread = w->waiter;
        w->waiter = w->asker = GT_NOBODY;
    }
    return w->waiter != GT_NOBODY && w->arrival > from ? w->arrival : from;
}

/*
 * Whether the thread's step ended because the path's thread before asked it something. Then the
 * path returns to that thread, where it began to wait for the answer.
 */
static bool was_asked(struct walk *w, const struct gt_lane_step *step)
{
    enum { PART = 32 };
    if (w->asker == GT_NOBODY || w->waiter != GT_NOBODY ||
        !gt_rest_was_asked(w->sections->graph, w->asker, w->asked, step, PART))
        return false;
    w->waiter = w->asker;
    w->arrival = w->asked;
    return true;
}

/*
 * Walks one thing back from `at`: a stretch, or a hop to the thread that ended the wait. hops: hops
 * since time last moved. If threads wait for each other in a circle, the wait itself is the
 * stretch.
 */
static uint64_t step_back(struct walk *w, uint64_t from, uint64_t at, size_t *hops)
{
    const struct gt_graph *graph = w->sections->graph;
    from = limit_of(w, from, at);
    struct gt_cursor *c = &w->cursor[w->thread];
    const struct gt_lane_step *step = gt_cursor_seek(c, at);
    bool lost = *hops > graph->lanes;
    uint32_t other = step ? step->by : creator_of(graph, w->thread, at);
    if (other != GT_NOBODY && !lost) {
        hop(w, step, other, at);
        (*hops)++;
        return at;
    }
    if (step && !lost && was_asked(w, step)) {
        (*hops)++;
        return at;
    }
    const struct gt_lane *lane = &graph->lane[w->thread];
    uint64_t before = at > lane->created ? lane->created : 0;
    uint64_t begin = step ? step->from : at > lane->until && lane->steps ? lane->until : before;
    begin = begin > from ? begin : from;
    *hops = 0;
    w->open = step && gt_step_is_open(step);
    if (w->path->trail)
        note_trail(w->path->trail, w->thread, begin, at);
    if (step) {
        w->path->seen[step->spot] += at - begin;
        gt_sections_split(w->sections, w->thread, step, begin, at, add_part, w);
        note_delay(w, step, begin, at);
        note_questions(w, begin, at);
        watch(w, begin, at);
    } else {
        add_unknown(w, begin, at);
    }
    return begin;
}

void gt_path_add(struct gt_critical_path *path, struct gt_sections *sections, uint32_t thread,
                 uint64_t from, uint64_t to)
{
    size_t lanes = sections->graph->lanes, hops = 0;
    struct walk w = {.path = path,
                     .sections = sections,
                     .cursor = gt_cursors_open(sections->graph),
                     .thread = thread,
                     .waiter = GT_NOBODY,
                     .asker = GT_NOBODY};
    if (!path->by_thread) {
        path->by_thread = gt_need(calloc(lanes + 1, sizeof *path->by_thread));
        path->across = gt_need(calloc(sections->graph->locks + 1, sizeof *path->across));
        path->seen = gt_need(calloc(sections->graph->spots + 1, sizeof *path->seen));
    }
    path->from = path->stretches ? path->from : from;
    path->to = to;
    path->walks++;
    while (to > from)
        to = step_back(&w, from, to, &hops);
    gt_cursors_close(w.cursor);
}

void gt_path_free(struct gt_critical_path *path)
{
    for (size_t i = 0; i < path->n; i++)
        free(path->row[i].lengths.at);
    free(path->row);
    free(path->by_thread);
    free(path->across);
    free(path->seen);
    free(path->woken.at);
    free(path->preempted.at);
    gt_memo_free(&path->by_section);
    gt_memo_free(&path->by_place);
    *path = (struct gt_critical_path){0};
}

GT_ORDER(by_ns, struct gt_path_row, GT_DOWN(ns) ?: GT_UP(section))

void gt_path_finish(struct gt_critical_path *path)
{
    if (path->n)
        qsort(path->row, path->n, sizeof *path->row, by_ns);
    gt_memo_free(&path->by_section);
    for (size_t i = 0; i < path->n; i++)
        *(uint64_t *)gt_need(gt_memo_at(&path->by_section, path->row[i].section + 1u)) = i + 1;
}

bool gt_path_row_waits_to_write(const struct gt_sections *sections, const struct gt_path_row *row)
{
    enum { LEAST = 10, LEAST_NS = 100000 };
    const struct gt_section *s = &sections->at[row->section];
    return (s->kind == GT_SYSCALL || s->kind == GT_NETWORK) && gt_section_writes(s) &&
           row->count >= LEAST && row->ns >= row->count * LEAST_NS;
}

const struct gt_path_row *gt_path_row_of(const struct gt_critical_path *path, uint32_t section)
{
    uint64_t i = gt_memo_find(&path->by_section, section + 1u);
    return i ? &path->row[i - 1] : NULL;
}

uint64_t gt_path_ns_of(const struct gt_critical_path *path, uint32_t section)
{
    const struct gt_path_row *row = gt_path_row_of(path, section);
    return row ? row->ns : 0;
}
