/* What `gotrace why` looks at, and in which order: see page.h. */
#include "page.h"

#include "scripts/tool/report/frames.h"
#include "scripts/tool/report/places.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/select.h"
#include "scripts/tool/tool.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* Until when the thread did anything else than what the end of the trace cuts. */
static uint64_t active_until(const struct gt_graph *graph, uint32_t thread, uint64_t to)
{
    const struct gt_lane *lane = &graph->lane[thread];
    struct gt_cursor c = {.graph = graph, .thread = thread};
    uint64_t until = lane->until < to ? lane->until : to;
    const struct gt_step *s = gt_cursor_seek(&c, until);
    bool waits = s && !s->ended && s->kind != GT_RUNNING && s->kind != GT_SCHED;
    until = waits && s->from < until ? s->from : until;
    gt_cursor_close(&c);
    return until;
}

/*
 * Whose end is that of the run: the main thread's, which ends the process; else, and where that
 * only waits for others when the trace ends, who did something last. Who waits for input may be a
 * server. Of those of --thread. GT_NOBODY: none did anything.
 */
static uint32_t last_thread(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    uint32_t found = GT_NOBODY;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        if (!lane->steps || lane->begin >= to || !gt_select_named(lane->thread))
            continue;
        uint64_t until = active_until(graph, i, to);
        bool main = lane->thread->g == 1 && lane->until >= to;
        if (main && (until * 2 > from + to || lane->thread->waits_as == GT_NETWORK))
            return i;
        if (until > latest) {
            latest = until;
            found = i;
        }
    }
    return found;
}

size_t gt_why_off_path(struct gt_why *why, struct gt_off_path *out, size_t most)
{
    const struct gt_survey *v = &why->survey;
    size_t n = 0;
    for (uint32_t i = 0; i < why->graph.spots; i++) {
        const struct gt_place_waits *p = &v->place[i];
        if (!p->ns)
            continue;
        bool own = p->threads == 1 && p->thread == why->thread;
        uint64_t on = why->path.seen[i];
        struct gt_off_path it = {p->section, p->ns > on ? p->ns - on : 0, p->threads};
        if (on * 20 > p->ns || p->of_lock || own || it.ns * 20 < why->to - why->from)
            continue;
        size_t at = n < most ? n++ : most;
        for (; at && out[at - 1].ns < it.ns; at--) {
            if (at < most)
                out[at] = out[at - 1];
        }
        if (at < most)
            out[at] = it;
    }
    return n;
}

/* Where the thread waits for input longest, a spot; GT_NOBODY: it does not. */
static uint32_t resting_place(const struct gt_why *why, uint32_t thread, uint64_t *ns)
{
    const struct gt_graph *graph = &why->graph;
    struct gt_cursor c = {.graph = graph, .thread = thread};
    struct gt_memo by_spot = {0};
    uint32_t found = GT_NOBODY;
    *ns = 0;
    for (const struct gt_step *s; (s = gt_cursor_next(&c));) {
        if (s->kind != GT_NETWORK || s->by != GT_NOBODY || s->to <= why->from || s->from >= why->to)
            continue;
        uint64_t *sum = gt_need(gt_memo_at(&by_spot, s->spot + UINT64_C(1)));
        *sum += s->to - s->from;
        if (*sum > *ns) {
            *ns = *sum;
            found = s->spot;
        }
    }
    gt_memo_free(&by_spot);
    gt_cursor_close(&c);
    return found;
}

enum { PIECES_MOST = 100000 };

static void add_pieces(struct gt_why *why, uint32_t thread, uint32_t spot)
{
    struct gt_cursor c = {.graph = &why->graph, .thread = thread};
    struct gt_pieces *pieces = &why->pieces;
    uint64_t since = 0;
    for (const struct gt_step *s; (s = gt_cursor_next(&c)) && pieces->n < PIECES_MOST;) {
        if (s->spot != spot || s->kind != GT_NETWORK)
            continue;
        if (since >= why->from && since && s->from > since && s->from <= why->to) {
            gt_path_add(&why->path, &why->sections, thread, since, s->from);
            pieces->n++;
            if (s->from - since > pieces->longest) {
                pieces->longest = s->from - since;
                pieces->longest_at = since;
            }
        }
        since = s->to;
    }
    gt_cursor_close(&c);
}

/* Whether the path is mostly the last thread's wait for a signal, or its sleeping to the end. */
static bool only_attends(const struct gt_why *why)
{
    static const char *const calls[] = {"sigwait", "sigwaitinfo", "sigtimedwait", "sigsuspend",
                                        "pause"};
    bool alive = why->graph.lane[why->thread].thread->state != GT_G_NONE;
    uint64_t ns = 0;
    for (size_t i = 0; i < why->path.n; i++) {
        const struct gt_path_row *row = &why->path.row[i];
        const struct gt_section *s = &why->sections.at[row->section];
        bool attends = alive && s->kind == GT_SLEEP && row->thread == why->thread;
        for (size_t k = 0; s->what && k < sizeof calls / sizeof *calls; k++)
            attends |= strcmp(s->what, calls[k]) == 0;
        ns += attends ? row->ns : 0;
    }
    return ns * 2 > why->path.ns;
}

/* Whether its end is not what is wanted: it waits for input then, and mostly; or was asked for. */
static bool gets_input(const struct gt_why *why)
{
    uint64_t ns;
    if (why->graph.lane[why->thread].thread->state == GT_G_NONE ||
        resting_place(why, why->thread, &ns) == GT_NOBODY)
        return false;
    return gt_select_any() ||
           (why->path.by_kind[GT_NETWORK] * 2 > why->path.ns && ns * 2 > why->to - why->from);
}

/* Who only gives others what comes in does not count, but when it was asked for. */
static bool is_served_by(const struct gt_why *why, uint32_t thread)
{
    return gt_select_any() ? gt_select_named(why->graph.lane[thread].thread)
                           : thread != why->thread;
}

/* Where there are some the path is theirs. */
static void find_pieces(struct gt_why *why)
{
    enum { LEAST = 10 };
    struct gt_path of_run = why->path;
    why->path = (struct gt_path){0};
    for (uint32_t i = 0; i < why->graph.lanes; i++) {
        uint64_t ns, before = why->pieces.n;
        uint32_t spot = resting_place(why, i, &ns);
        if (spot != GT_NOBODY && is_served_by(why, i))
            add_pieces(why, i, spot);
        why->pieces.threads += why->pieces.n > before;
    }
    gt_path_free(why->pieces.n < LEAST ? &why->path : &of_run);
    why->path = why->pieces.n < LEAST ? of_run : why->path;
    why->pieces = why->pieces.n < LEAST ? (struct gt_pieces){0} : why->pieces;
    why->path.from = why->from;
    why->path.to = why->to;
}

void gt_why_find(struct gt_why *why, uint64_t from, uint64_t to)
{
    why->to = to < why->graph.trace.ns ? to : why->graph.trace.ns;
    why->from = from;
    why->thread = last_thread(&why->graph, why->from, why->to);
    if (why->from >= why->to || why->thread == GT_NOBODY)
        gt_fail(GT_EXIT_FAILED, "%s: nothing is recorded of that time%s", why->graph.trace.path,
                gt_select_any() ? " and such threads" : "");
    gt_sections_begin(&why->sections, &why->graph);
    if (why->task) {
        gt_tasks_find(&why->tasks, &why->sections, why->task, why->from, why->to);
        return;
    }
    gt_show_doing(&why->graph.trace, "following the critical path");
    gt_whatifs_choose(&why->whatifs, &why->graph, why->from, why->to);
    why->path.watch = why->whatifs.to;
    why->path.watch_thread = GT_NOBODY;
    gt_path_add(&why->path, &why->sections, why->thread, why->from, why->to);
    if (gets_input(why) || only_attends(why))
        find_pieces(why);
    gt_path_finish(&why->path);
    gt_show_doing(&why->graph.trace, "summing up what all threads did");
    gt_survey_make(&why->survey, &why->sections, why->from, why->to);
    gt_show_doing(&why->graph.trace, "trying what would help");
    if (!why->pieces.n)
        gt_whatifs_find(&why->whatifs, &why->sections, &why->path, &why->survey);
    gt_findings_find(&why->findings, &why->sections, why->thread, &why->path, &why->survey,
                     &why->whatifs);
    gt_show_doing(&why->graph.trace, NULL);
}
