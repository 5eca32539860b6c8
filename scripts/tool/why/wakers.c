/* See wakers.h. */
#include "wakers.h"

#include "scripts/tool/report/roles.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guessed -------------------------------------------------------------------------------------- */

/* The section of the guess's place: several spots may be at one line of the program. */
static uint32_t section_of(struct gt_why *why, const struct gt_guessed *guess)
{
    struct gt_lane_step call = {.kind = GT_SYSCALL, .spot = guess->spot};
    return gt_sections_of(&why->sections, guess->by, &call);
}

/* The section with most of the waits. *waits: how many. */
static uint32_t find_most(struct gt_why *why, uint64_t *waits)
{
    const struct gt_graph *graph = &why->graph;
    struct gt_memo by_section = {0};
    uint32_t most = 0;
    *waits = 0;
    for (size_t i = 0; i < graph->guesses; i++) {
        uint32_t section = section_of(why, &graph->guess[i]);
        uint64_t *sum = gt_need(gt_memo_at(&by_section, section + 1u));
        *sum += graph->guess[i].waits;
        most = *sum > *waits ? section : most;
        *waits = *sum > *waits ? *sum : *waits;
    }
    gt_memo_free(&by_section);
    return most;
}

/* The thread that ended most of the section's waits. *threads: how many threads ended some. */
static uint32_t find_waker(struct gt_why *why, uint32_t section, uint32_t *threads)
{
    const struct gt_graph *graph = &why->graph;
    uint64_t *by = gt_need(calloc(graph->lanes + 1, sizeof *by));
    uint32_t top = 0;
    *threads = 0;
    for (size_t i = 0; i < graph->guesses; i++) {
        const struct gt_guessed *it = &graph->guess[i];
        if (section_of(why, it) != section)
            continue;
        *threads += !by[it->by];
        by[it->by] += it->waits;
        top = by[it->by] > by[top] ? it->by : top;
    }
    free(by);
    return top;
}

char *gt_wakers_guessed(struct gt_why *why)
{
    const struct gt_graph *graph = &why->graph;
    char *text = NULL, also[100] = "", more[100] = "";
    uint64_t waits;
    uint32_t threads, section = find_most(why, &waits), by = find_waker(why, section, &threads);
    if (!waits)
        return NULL;
    if (threads > 1)
        snprintf(also, sizeof also, " and %s more", gt_count(threads - 1, "thread"));
    if (waits < graph->inferred)
        snprintf(more, sizeof more, " So is that of %" PRIu64 " more.", graph->inferred - waits);
    if (asprintf(&text, "The waker of %s in %s is a guess from their end times: %s%s.%s",
                 gt_count(waits, "wait"), gt_section_name(&why->sections, section),
                 gt_name_of_one(graph, by).text, also, more) < 0)
        text = NULL;
    return gt_need(text);
}

/* Unknown -------------------------------------------------------------------------------------- */

enum {
    CONSIDERABLE_PERCENT = 10, /* of the path */
    ACTIVE_PERCENT = 1,        /* of the interval: work of a thread that may be the waker */
};

/* Whether another thread or process may end a wait there by a call that no event names. */
static bool is_input(const struct gt_section *s)
{
    bool accepts = s->what && gt_is_accept(s->what);
    return (s->kind == GT_SYSCALL || s->kind == GT_NETWORK) && (gt_section_reads(s) || accepts);
}

/* Whether a thread other than that one worked, or waited beside the path. */
static bool others_did_something(struct gt_why *why, uint32_t thread)
{
    struct gt_off_path off;
    bool did = gt_why_off_path(why, &off, 1);
    for (uint32_t i = 0; i < why->graph.lanes; i++)
        did |= i != thread && why->survey.work[i] * 100 >= (why->to - why->from) * ACTIVE_PERCENT;
    return did;
}

/*
 * Whether the thread waits there for what clients ask next, which no program makes faster. A thread
 * that holds a lock is in the middle of its work. A batch program's own threads or processes may
 * be the clients.
 */
static bool is_for_clients(const struct gt_why *why, const struct gt_section *s)
{
    return (why->pieces.n || (why->loops.serves && !why->finishes)) && s->rest &&
           s->lock == GT_NOBODY && !gt_graph_is_of_family(&why->graph);
}

void gt_wakers_find_unknown(struct gt_why *why)
{
    struct gt_unknown_wakers found = {0};
    for (size_t i = 0; i < why->path.n; i++) {
        const struct gt_path_row *row = &why->path.row[i];
        const struct gt_section *s = &why->sections.at[row->section];
        bool writes = gt_path_row_waits_to_write(&why->sections, row);
        if (!writes && (!is_input(s) || is_for_clients(why, s)))
            continue;
        found.written += writes ? row->ns : 0;
        found.row = found.row ? found.row : row;
        found.waits += row->count;
        found.ns += row->ns;
    }
    if (found.row && found.ns * 100 >= why->path.ns * CONSIDERABLE_PERCENT &&
        (found.written * 2 > found.ns || others_did_something(why, found.row->most)))
        why->unknown = found;
}

char *gt_wakers_unknown(const struct gt_why *why)
{
    const struct gt_path_row *row = why->unknown.row;
    char *text = NULL, waits[60] = "wait", more[60] = "";
    if (!row)
        return NULL;
    if (row->count > 1)
        snprintf(waits, sizeof waits, "%" PRIu64 " waits", row->count);
    if (row->count < why->unknown.waits)
        snprintf(more, sizeof more, ", and %" PRIu64 " more", why->unknown.waits - row->count);
    if (asprintf(&text,
                 "Nobody is known to end the %s in %s%s: another thread, process, timer or "
                 "device may set the pace.%s",
                 waits, gt_section_name(&why->sections, row->section), more,
                 gt_graph_knows_channels(&why->graph)
                     ? ""
                     : " To know, record with gotrace -f -s all …, then gotrace why again.") < 0)
        text = NULL;
    return gt_need(text);
}
