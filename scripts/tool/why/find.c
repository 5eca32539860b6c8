/* What `gotrace why` computes, and in which order: see page.h. */
#include "asked.h"
#include "finishes.h"
#include "page.h"
#include "reaped.h"
#include "restless.h"
#include "rests.h"
#include "wakers.h"

#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/roles.h"
#include "scripts/tool/report/select.h"
#include "scripts/tool/tool.h"

#include <stdlib.h>
#include <string.h>

/*
 * When the thread last did anything, up to `to`. A last wait that the end of the trace cuts does
 * not count.
 */
static uint64_t active_until(const struct gt_graph *graph, uint32_t thread, uint64_t to)
{
    const struct gt_lane *lane = &graph->lane[thread];
    GT_CURSOR(c, graph, thread);
    uint64_t until = lane->until < to ? lane->until : to;
    const struct gt_lane_step *s = gt_cursor_seek(&c, until);
    return s && gt_step_is_open(s) && s->from < until ? s->from : until;
}

enum { LONG_PART = 20 }; /* of the interval */

/* Whether the thread was only waiting when the first process ended, probably for that end. */
static bool rests_at(const struct gt_graph *graph, uint32_t thread, uint64_t end)
{
    enum { EARLY_PART = 4 }; /* the process may have told it on its way out */
    struct gt_lane_step rest;
    return gt_rest_before(graph, thread, end, &rest) &&
           rest.to + (rest.to - rest.from) / EARLY_PART >= end;
}

/*
 * Whether the run ends with that main thread. Other processes may live on if they end soon, or only
 * waited for its end (Python's resource tracker).
 */
static bool ends_run(const struct gt_graph *graph, uint32_t main, uint64_t from, uint64_t to)
{
    uint64_t end = graph->lane[main].until, soon = end + (to - from) / LONG_PART;
    bool ends = graph->lane[main].thread->g == 1;
    for (uint32_t i = 0; i < graph->lanes && ends && end < to; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        ends = !lane->steps || lane->until <= end ||
               (gt_is_of_other_process(lane->thread, graph->lane[main].thread) &&
                (lane->until <= soon || rests_at(graph, i, end)));
    }
    return ends;
}

/*
 * The thread at whose end the run ends. It is the first process's main thread, whose end ends that
 * process, if the run ends with it and it was active in the second half of the interval, or waits
 * for input as servers do. Else it is the thread that was active last; a thread that ended long
 * before the interval does only if no other lives on. With --thread only matching threads count.
 * GT_NOBODY: no thread did anything.
 */
static uint32_t last_thread(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    uint32_t found = GT_NOBODY;
    uint64_t latest = 0;
    bool found_lives = false;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        if (!lane->steps || lane->begin >= to || !gt_select_named(lane->thread))
            continue;
        uint64_t until = active_until(graph, i, to);
        if (ends_run(graph, i, from, to) &&
            (until * 2 > from + to || lane->thread->waits_as == GT_NETWORK))
            return i;
        bool lives = lane->until + (to - from) / LONG_PART >= to;
        if (lives == found_lives ? until > latest : lives) {
            latest = until;
            found = i;
            found_lives = lives;
        }
    }
    return found;
}

/* Whether next to none of the waits at that place are on the path, and they are real. */
static bool is_off_path(const struct gt_why *why, uint32_t spot)
{
    const struct gt_place_waits *p = &why->survey.place[spot];
    bool own = p->threads == 1 && p->thread == why->thread;
    bool restless = why->restless && p->section == why->restless->rest;
    return p->ns && why->path.seen[spot] * 20 <= p->ns && !p->of_lock && !own && !restless;
}

/* Sums up by section: one line of the program may have several spots. */
static struct gt_off_path *sum_off_path(const struct gt_why *why)
{
    struct gt_off_path *sum = gt_need(calloc(why->sections.n + 1, sizeof *sum));
    struct gt_memo seen = {0};
    for (size_t i = 0; i < why->survey.waiters; i++) {
        const struct gt_place_waiter *w = &why->survey.waiter[i];
        const struct gt_place_waits *p = &why->survey.place[w->spot];
        uint64_t *slot = gt_need(gt_memo_at(&seen, (p->section + UINT64_C(1)) << 32 | w->thread));
        if (!is_off_path(why, w->spot) || *slot)
            continue;
        *slot = 1;
        sum[p->section].threads++;
    }
    gt_memo_free(&seen);
    for (uint32_t i = 0; i < why->graph.spots; i++) {
        const struct gt_place_waits *p = &why->survey.place[i];
        struct gt_off_path *its = &sum[p->section];
        if (!is_off_path(why, i))
            continue;
        *its = (struct gt_off_path){p->section, p->thread, its->ns, its->threads};
        its->ns += p->ns > why->path.seen[i] ? p->ns - why->path.seen[i] : 0;
    }
    return sum;
}

size_t gt_why_off_path(const struct gt_why *why, struct gt_off_path *out, size_t most)
{
    struct gt_off_path *sum = sum_off_path(why);
    size_t n = 0;
    for (uint32_t i = 0; i < why->sections.n; i++) {
        size_t at = n < most ? n : most;
        if (!sum[i].ns || sum[i].ns * 20 < why->to - why->from)
            continue;
        n += n < most;
        for (; at && out[at - 1].ns < sum[i].ns; at--) {
            if (at < most)
                out[at] = out[at - 1];
        }
        if (at < most)
            out[at] = sum[i];
    }
    free(sum);
    return n;
}

static void note_off_path(struct gt_why *why)
{
    struct gt_off_path off[GT_OFF_MOST];
    why->whatifs.offs = gt_why_off_path(why, off, GT_OFF_MOST);
    for (size_t i = 0; i < why->whatifs.offs; i++)
        why->whatifs.off[i] = off[i].section;
}

/* Whether the path's last thread does next to nothing between its sleeps. */
static bool only_sleeps(const struct gt_why *why)
{
    GT_CURSOR(c, &why->graph, why->thread);
    uint64_t slept = 0, worked = 0, since = 0;
    for (const struct gt_lane_step *s = gt_cursor_from(&c, why->from); s && s->to <= why->to;
         s = gt_cursor_next(&c)) {
        if (s->kind == GT_SLEEP) {
            worked += slept ? since : 0;
            slept += s->to - s->from;
            since = 0;
        } else if (s->kind != GT_SCHED) {
            since += s->to - s->from;
        }
    }
    return worked * LONG_PART <= slept;
}

/* Whether most of the path is the last thread waiting for a signal, or sleeping until the end. */
static bool only_attends(const struct gt_why *why)
{
    bool alive = why->graph.lane[why->thread].thread->state != GT_G_NONE && only_sleeps(why);
    uint64_t ns = 0;
    for (size_t i = 0; i < why->path.n; i++) {
        const struct gt_path_row *row = &why->path.row[i];
        const struct gt_section *s = &why->sections.at[row->section];
        bool attends = alive && s->kind == GT_SLEEP && row->thread == why->thread;
        ns += attends || gt_section_waits_for_signal(s) ? row->ns : 0;
    }
    return ns * 2 > why->path.ns;
}

/* Whether it gets its work through descriptors, as from other processes. */
static bool gets_input(const struct gt_why *why, const struct gt_loop *loop)
{
    return why->sections.at[loop->rest].kind == GT_NETWORK;
}

/* The part of the path that lies in waits for input. */
static double part_of_input(const struct gt_why *why)
{
    uint64_t rest = 0;
    for (size_t i = 0; i < why->path.n; i++)
        rest += why->sections.at[why->path.row[i].section].rest ? why->path.row[i].ns : 0;
    return (double)rest / (double)why->path.ns;
}

/*
 * The part of the path that lies in waits for input, or in threads that come back to such waits. If
 * the path's last thread is one of these, it also hands its input to threads that wait for work.
 */
static double part_of_loops(const struct gt_why *why)
{
    const struct gt_loops *loops = &why->loops;
    uint32_t own = loops->of[why->thread];
    bool all = own != GT_NOBODY && gets_input(why, &loops->at[own]);
    double input = part_of_input(why), its = 0;
    for (size_t i = 0; i < why->graph.lanes; i++) {
        const struct gt_loop *loop = loops->of[i] != GT_NOBODY ? &loops->at[loops->of[i]] : NULL;
        its += loop && (all || gets_input(why, loop)) ? (double)why->path.by_thread[i] : 0;
    }
    its /= (double)why->path.ns;
    return input > its ? input : its;
}

/* Whether the end of the recording cuts a wait of the thread for input. */
static bool rests_at_end(const struct gt_why *why)
{
    GT_CURSOR(c, &why->graph, why->thread);
    const struct gt_lane_step *s = gt_cursor_seek(&c, why->graph.lane[why->thread].until);
    return s && !s->ended && s->kind == GT_NETWORK;
}

/* Whether threads other than the path's last one come back to waits for input. */
static bool others_get_input(const struct gt_why *why)
{
    for (uint32_t i = 0; i < why->graph.lanes; i++) {
        uint32_t loop = why->loops.of[i];
        if (i != why->thread && loop != GT_NOBODY && gets_input(why, &why->loops.at[loop]))
            return true;
    }
    return false;
}

/* Whether a thread that had ended by the end of the run let clients come. */
static bool serves_itself(const struct gt_why *why)
{
    for (uint32_t i = 0; i < why->graph.lanes; i++) {
        if (why->graph.lane[i].until > why->to)
            continue;
        GT_EACH_STEP(s, &why->graph, i) {
            if (gt_is_for_clients(gt_leaf_of(why->graph.spot[s->spot].stack)))
                return true;
        }
    }
    return false;
}

/*
 * What the thread at the path's end does decides, however the recording ended: the end of a server
 * is not what the user asks about.
 */
static enum gt_reading read_as(const struct gt_why *why)
{
    const struct gt_thread_state *last = why->graph.lane[why->thread].thread;
    uint32_t own = why->loops.of[why->thread];
    bool lives = last->state != GT_G_NONE, input = why->loops.serves;
    for (size_t i = 0; i < why->loops.n; i++)
        input |= gets_input(why, &why->loops.at[i]);
    if (why->as != GT_AS_FOUND)
        return why->as == GT_AS_SERVER ? GT_SERVER_ASKED : GT_BATCH;
    if (gt_select_any())
        return lives && own != GT_NOBODY ? GT_SERVER_ASKED : GT_BATCH;
    if (why->finishes || (why->outlived && !serves_itself(why)))
        return GT_BATCH;
    if (why->loops.serves && part_of_loops(why) >= 0.5)
        return gt_graph_calls(&why->graph, gt_is_accept) ? GT_SERVER_ACCEPTS : GT_SERVER_BINDS;
    if (lives && own != GT_NOBODY && rests_at_end(why) &&
        why->path.by_kind[GT_NETWORK] * 2 > why->path.ns &&
        why->loops.at[own].rest_ns * 2 > why->to - why->from)
        return GT_SERVER_WAITS;
    /* Its connections were accepted in calls too short to be recorded, or before. */
    if (!why->loops.connects && part_of_input(why) >= 0.5 && others_get_input(why))
        return GT_SERVER_WAITS;
    bool attends = input && own == GT_NOBODY && !why->loops.connects && only_attends(why);
    return attends ? GT_SERVER_ATTENDS : GT_BATCH;
}

enum { PIECES_MOST = 100000 };

static bool add_piece(void *arg, uint32_t thread, uint64_t from, uint64_t to)
{
    struct gt_why *why = arg;
    struct gt_pieces *pieces = &why->pieces;
    gt_path_add(&why->path, &why->sections, thread, from, to);
    pieces->n++;
    if (to - from > pieces->longest) {
        pieces->longest = to - from;
        pieces->longest_at = from;
    }
    return pieces->n < PIECES_MOST;
}

/* If there are enough pieces of work, the path becomes theirs. */
static void find_pieces(struct gt_why *why)
{
    struct gt_critical_path of_run = why->path;
    why->path = (struct gt_critical_path){0};
    for (uint32_t i = 0; i < why->graph.lanes && why->pieces.n < PIECES_MOST; i++) {
        if (why->loops.of[i] == GT_NOBODY || !gt_select_named(why->graph.lane[i].thread))
            continue;
        gt_loops_each_piece(&why->loops, &why->graph, i, add_piece, why);
        why->pieces.threads++;
    }
    gt_path_free(why->pieces.n ? &of_run : &why->path);
    why->path = why->pieces.n ? why->path : of_run;
    why->path.from = why->from;
    why->path.to = why->to;
}

/*
 * Drops findings that are no fault of a server. Its threads wait for input because clients send no
 * more, or one request at a time, and it makes a thread when a client comes.
 */
static void drop_what_clients_do(struct gt_findings *all, const struct gt_sections *sections)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct gt_finding *it = &all->at[i];
        const struct gt_section *s = it->section == GT_NOBODY ? NULL : &sections->at[it->section];
        bool input = s && s->rest && s->kind == GT_NETWORK;
        if (strcmp(it->name, "false_idle") != 0 && strcmp(it->name, "one_at_a_time") != 0 &&
            !(input && strcmp(it->name, "serialised_pool") == 0))
            all->at[n++] = *it;
    }
    all->n = n;
}

/*
 * In a replay the waits of a poll last as long as they did, whatever ends them. Where they are most
 * of the path, no gain is known.
 */
static void drop_what_polls_decide(struct gt_why *why)
{
    uint64_t ns = 0;
    const struct gt_finding *it = NULL;
    while ((it = gt_findings_next(&why->findings, "polling", it)))
        ns += it->section != why->whatifs.poll ? gt_path_ns_of(&why->path, it->section) : 0;
    why->whatifs.n = ns * 2 > why->path.ns ? 0 : why->whatifs.n;
}

/* Ends the program: there is nothing to explain. */
static _Noreturn void fail_empty(const struct gt_why *why, uint64_t to)
{
    const struct gt_trace *trace = &why->graph.trace;
    const char *path = gt_to_type(trace->path);
    if (!trace->ns)
        gt_fail(GT_EXIT_FAILED, "%s: nothing is recorded in it: gotrace info %s", trace->path,
                path);
    if (why->from >= to)
        gt_fail_reversed(why->from, to);
    if (why->from >= trace->ns)
        gt_fail_late(trace->path, why->from, trace->ns);
    if (gt_select_any() && gt_select_names_none(&why->graph.threads))
        exit(GT_EXIT_FAILED);
    gt_fail(GT_EXIT_FAILED,
            "%s: nothing is recorded in that time%s; gotrace info %s lists its threads",
            trace->path, gt_select_any() ? " of the threads that --thread names" : "", path);
}

/* Finds the time to explain, and its last thread. Ends the program if no thread runs in it. */
static void find_end(struct gt_why *why, uint64_t from, uint64_t to)
{
    why->to = to < why->graph.trace.ns ? to : why->graph.trace.ns;
    why->from = from;
    why->thread = GT_NOBODY;
    if (why->to == why->graph.trace.ns && why->from < why->to)
        gt_standstill_find(&why->still, &why->graph, why->to - why->from);
    if (why->still.from > why->from)
        why->thread = last_thread(&why->graph, why->from, why->still.from);
    if (why->thread != GT_NOBODY)
        why->to = why->still.from;
    else
        why->thread = last_thread(&why->graph, why->from, why->to);
    why->outlived = why->thread != GT_NOBODY && why->graph.lane[why->thread].until < why->to &&
                    ends_run(&why->graph, why->thread, why->from, why->to);
    if (why->outlived)
        why->to = why->graph.lane[why->thread].until;
    if (why->from >= why->to || why->thread == GT_NOBODY)
        fail_empty(why, to);
}

/* Finds the critical path and the loops, and whether the run is a batch or a server. */
static void find_path(struct gt_why *why)
{
    gt_show_doing(&why->graph.trace, "following the critical path");
    gt_whatifs_choose(&why->whatifs, &why->graph, why->from, why->to);
    why->path.watch = why->whatifs.to;
    why->path.watch_thread = GT_NOBODY;
    why->path.trail = why->timeline ? &why->trail : NULL;
    gt_path_add(&why->path, &why->sections, why->thread, why->from, why->to);
    gt_loops_find(&why->loops, &why->sections, why->from, why->to);
    why->sections.asks = why->loops.connects;
    why->finishes = gt_finishes(&why->loops, &why->path, &why->graph, why->thread);
    why->reading = why->loops.n ? read_as(why) : GT_BATCH;
    if (why->reading != GT_BATCH) {
        find_pieces(why);
        gt_loops_find_blockages(&why->loops, &why->sections);
    }
    gt_path_finish(&why->path);
}

/* Tries each change that might help, and fills the list of findings. */
static void find_findings(struct gt_why *why)
{
    gt_show_doing(&why->graph.trace, "trying what would help");
    note_off_path(why);
    if (!why->pieces.n)
        gt_whatifs_find(&why->whatifs, &why->sections, &why->path, &why->survey);
    gt_findings_find(&why->findings, &why->sections, why->thread, &why->path, &why->survey,
                     &why->whatifs);
    drop_what_polls_decide(why);
    if (why->pieces.n)
        drop_what_clients_do(&why->findings, &why->sections);
    gt_loops_tell(&why->loops, &why->findings, &why->sections, why->pieces.n ? &why->path : NULL);
    if (why->restless)
        gt_restless_tell(why->restless, &why->findings, &why->sections);
}

void gt_why_find(struct gt_why *why, uint64_t from, uint64_t to)
{
    find_end(why, from, to);
    gt_sections_begin(&why->sections, &why->graph);
    if (why->task) {
        gt_tasks_find(&why->tasks, &why->sections, why->task, why->from, why->to);
        return;
    }
    find_path(why);
    gt_show_doing(&why->graph.trace, "summing up what all threads did");
    gt_survey_make(&why->survey, &why->sections, why->from, why->to);
    gt_asked_find(&why->survey, &why->sections);
    why->restless = gt_restless_find(&why->loops, &why->sections);
    gt_wakers_find_unknown(why);
    find_findings(why);
    gt_show_doing(&why->graph.trace, NULL);
}
