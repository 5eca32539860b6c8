/* See standstill.h. */
#include "standstill.h"

#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/deadlocks.h"
#include "scripts/tool/report/idle.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_PERCENT = 10, LEAST_NS = 100000000 }; /* of the interval, and at least */

static bool is_alive(const struct gt_thread_state *t)
{
    return !t->ended && t->state != GT_G_NONE;
}

static bool has_limit(const struct gt_thread_state *t)
{
    const char *call = gt_leaf_of(t->stack);
    return (t->at_end && t->at_end->timed) || strstr(call, "timed") || strstr(call, "clock");
}

/* Whether the thread waits for others, or for input; a call such as fsync is work. */
static bool waits_for_others(const struct gt_thread_state *t)
{
    enum gt_kind kind = gt_kind_of(t);
    const char *call = gt_leaf_of(t->stack);
    bool waits = t->state == GT_G_WAITING || t->state == GT_G_SYSCALL;
    return waits && kind != GT_SLEEP && !has_limit(t) && !gt_waits_for_child(call) &&
           (kind == GT_SYNC || kind == GT_NETWORK || gt_waits_for_input(call));
}

/* Whether a signal on what it waits for found no waiter: lost_wakeup in findings.c tells that. */
static bool may_have_missed(const struct gt_graph *graph, const struct gt_thread_state *t)
{
    for (size_t i = 0; t->wanted.lock && i < graph->trace.n_signals; i++) {
        const struct gt_signals_row *row = &graph->trace.signals[i];
        if (row->vain && strcmp(row->name, t->wanted.lock->name) == 0)
            return true;
    }
    return false;
}

static const struct gt_thread_state *after(const struct gt_graph *graph,
                                           const struct gt_thread_state *t)
{
    const struct gt_thread_state *holder =
        t->at_end ? gt_threads_find(&graph->threads, t->wanted.holder) : NULL;
    return holder && is_alive(holder) ? holder : NULL;
}

/* The thread that all the others wait for, from this one on. No deadlock: there is an end. */
static const struct gt_thread_state *root_of(const struct gt_graph *graph,
                                             const struct gt_thread_state *t)
{
    const struct gt_thread_state *next = after(graph, t);
    for (uint64_t i = 0; next && i < graph->threads.n; i++) {
        t = next;
        next = after(graph, t);
    }
    return t;
}

/*
 * Whether it matters that threads do not go on: another one waits for a lock of theirs, or the main
 * thread waits. A main thread may wait for the end of a program whose other threads wait for work,
 * and a thread of a server for a client.
 */
static bool holds_up(const struct gt_graph *graph)
{
    bool rests = false, held = false, main = false, of_main_syncs = true;
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next) {
        if (!is_alive(t))
            continue;
        const struct gt_thread_state *root = root_of(graph, t);
        bool rest = gt_is_idle_at_end(root);
        rests |= rest;
        held |= t->awaited && !rest;
        if (t->g == 1) {
            main = !rest;
            of_main_syncs = gt_kind_of(root) == GT_SYNC;
        }
    }
    return held || (main && !gt_graph_calls(graph, gt_is_for_clients) && !(rests && of_main_syncs));
}

/* false: it is there. */
static bool add_waiter(struct gt_standstill *still, const struct gt_thread_state *t)
{
    for (size_t i = 0; i < still->n; i++) {
        if (still->waiter[i] == t->number)
            return false;
    }
    still->waiter[still->n++] = t->number;
    return true;
}

/* Each thread is followed by the one that it waits for. Threads are in the order of their begin. */
static void add_waiters(struct gt_standstill *still, const struct gt_graph *graph)
{
    still->waiter = gt_need(calloc(graph->threads.n + 1, sizeof *still->waiter));
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next) {
        if (!is_alive(t) || gt_is_idle_at_end(root_of(graph, t)))
            continue;
        const struct gt_thread_state *its = t;
        while (its && add_waiter(still, its))
            its = after(graph, its);
    }
}

void gt_standstill_find(struct gt_standstill *still, const struct gt_graph *graph, uint64_t length)
{
    uint64_t from = 0, end = graph->trace.ns;
    *still = (struct gt_standstill){0};
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next) {
        uint64_t at = t->ended ? t->end : is_alive(t) ? t->since : 0;
        if (is_alive(t) && (!waits_for_others(t) || may_have_missed(graph, t)))
            return;
        from = at > from ? at : from;
    }
    if (from >= end || end - from < LEAST_NS || (end - from) * 100 < length * LEAST_PERCENT ||
        gt_any_deadlock(&graph->threads) || !holds_up(graph))
        return;
    still->from = from;
    still->ns = end - from;
    add_waiters(still, graph);
}

uint32_t gt_standstill_after(const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_thread_state *t = after(graph, graph->lane[thread].thread);
    return t ? t->number : GT_NOBODY;
}

uint32_t gt_standstill_section(struct gt_sections *sections, uint32_t thread)
{
    GT_CURSOR(c, sections->graph, thread);
    const struct gt_lane_step *s = gt_cursor_seek(&c, sections->graph->lane[thread].until);
    return s ? gt_sections_of(sections, thread, s) : sections->unknown;
}

const char *gt_standstill_lock(const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_thread_state *t = graph->lane[thread].thread;
    return t->state == GT_G_WAITING && t->wanted.lock ? t->wanted.lock->name : "";
}
