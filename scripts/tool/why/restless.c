/* See restless.h. */
#include "restless.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>

enum { LEAST_WAITS = 30 };

/* What the kernel counted of the loop's threads. queue_ns: with what it had not yet counted when a
 * thread ended. */
struct counted {
    uint64_t sleeps, cpu_ns, queue_ns, life_ns;
    bool known;
};

static struct counted count(const struct gt_loops *loops, const struct gt_graph *graph,
                            uint32_t loop)
{
    const unsigned all = GT_KNOWN_CPU | GT_KNOWN_QUEUE | GT_KNOWN_SWITCHES;
    struct counted sum = {.known = true};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_shares *s = &graph->lane[i].thread->shares;
        if (loops->of[i] != loop)
            continue;
        sum.known &= (s->used.known & all) == all && !graph->lane[i].thread->unknown;
        sum.sleeps += s->used.of[GT_USED_VOLUNTARY];
        sum.cpu_ns += s->cpu;
        sum.queue_ns += s->queue;
        sum.life_ns += graph->lane[i].until - graph->lane[i].begin;
    }
    return sum;
}

/*
 * A loop that is busy with real input is not in that call for most of its time on a CPU. A loop
 * that has to wait gives up its CPU. The usual call tells how long the calls have a CPU: it loses
 * none, while the whole time in calls depends on where the loop happened to lose its CPU.
 */
static bool is_restless(const struct gt_loops *loops, const struct gt_sections *sections,
                        uint32_t number)
{
    enum { SLEEPS_PART = 4, BUSY_PERCENT = 60 };
    const struct gt_loop *loop = &loops->at[number];
    if (sections->at[loop->rest].kind != GT_NETWORK || loop->rests < LEAST_WAITS)
        return false;
    struct counted of = count(loops, sections->graph, number);
    return of.known && of.sleeps * SLEEPS_PART <= loop->rests &&
           loop->rest_p50 * loop->rests * 2 >= of.cpu_ns &&
           (of.cpu_ns + of.queue_ns) * 100 >= of.life_ns * BUSY_PERCENT;
}

const struct gt_loop *gt_restless_find(const struct gt_loops *loops,
                                       const struct gt_sections *sections)
{
    bool whole = loops->from == 0 && loops->to == sections->graph->trace.ns; /* as accounts are */
    for (uint32_t i = 0; whole && i < loops->n; i++) {
        if (is_restless(loops, sections, i))
            return &loops->at[i];
    }
    return NULL;
}

void gt_restless_tell(const struct gt_loop *loop, struct gt_findings *all,
                      const struct gt_sections *sections)
{
    struct gt_finding it = {
        .name = "restless_loop", .command = "info", .at = GT_NO_TIME, .lock = GT_NOBODY};
    if (asprintf(&it.text,
                 "Event loop turns without work: by its events %s waits for %.0f %% of its\n"
                 "  life in %s, but by the kernel's account it\n"
                 "  hardly ever sleeps and has a CPU, or waits for one.\n"
                 "  Something is always ready there, such as room to write.",
                 gt_loop_name(sections->graph, loop).text,
                 100 * (double)loop->rest_ns / (double)loop->life_ns,
                 gt_section_name(sections, loop->rest)) < 0)
        it.text = NULL;
    gt_need(it.text);
    it.section = loop->rest;
    gt_findings_insert(all, 0, it);
}
