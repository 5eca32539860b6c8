/* See accepts.h. */
#include "accepts.h"

#include "encoder/read/need.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>
#include <string.h>

enum {
    LATE_NS = 1000000, /* work since the worker's last rest: then a connection has waited for it */
    SERVED_NS = 50000, /* a connection takes more work */
};

struct worker {
    uint64_t its, late, late_at; /* as in struct gt_accepts */
    uint64_t busy_ns;            /* work but for its rests */
    uint64_t rest_ns;
    uint32_t rest; /* the section in which it rests longest; or GT_NOBODY */
    bool accepts;  /* it has called accept, or waits in it */
};

static bool is_accept(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return gt_is_accept(gt_graph_call_of(graph, s));
}

/*
 * Counts what the thread accepted, as far as it is recorded. The library records a short accept, as
 * a call, only if it made a connection. An accept that waited may have timed out; then the thread
 * comes back to it at once. After the last accept of all the thread makes no more calls: the
 * listening socket was closed. since: end of the thread's last wait for input; ran: since `last`.
 */
static struct worker look_at(const struct gt_survey *survey, struct gt_sections *sections,
                             uint32_t thread)
{
    const struct gt_graph *graph = sections->graph;
    struct worker w = {.rest = GT_NOBODY};
    bool waited = false; /* the last accept did */
    uint64_t since = graph->lane[thread].begin, last = 0, late = 0, ran = 0;
    GT_EACH_STEP_IN(s, graph, thread, survey->from, survey->to) {
        bool accepts = is_accept(graph, s), waits = s->kind == GT_NETWORK;
        bool rests = waits && (accepts || gt_graph_is_idle(graph, s));
        if (s->kind != GT_RUNNING && s->kind != GT_SCHED && last) {
            w.its += !(accepts && waited) || ran >= SERVED_NS;
            w.late += late != 0;
            w.late_at = w.late == 1 && late ? late : w.late_at;
            last = late = 0;
        }
        if (rests && s->to - s->from >= w.rest_ns) {
            w.rest_ns = s->to - s->from;
            w.rest = gt_sections_of(sections, thread, s);
        }
        uint64_t to = s->to < survey->to ? s->to : survey->to;
        if (!rests && gt_survey_works(s))
            w.busy_ns += to - (s->from > survey->from ? s->from : survey->from);
        since = rests ? s->to : since;
        w.accepts |= accepts;
        ran += s->kind == GT_RUNNING ? s->to - s->from : 0;
        if (accepts && s->ended) {
            last = s->to;
            ran = 0;
            waited = waits;
            late = w.its && s->from > since + LATE_NS ? s->from : 0;
        }
    }
    return w;
}

/* Sums up the pool of the worker that accepted most. */
static struct gt_accepts sum_up(const struct gt_survey *survey, const struct worker *of, size_t n,
                                uint32_t most)
{
    double length = (double)(survey->to - survey->from);
    const struct worker *its = &of[most];
    struct gt_accepts sum = {.worker = most,
                             .its = its->its,
                             .late = its->late,
                             .late_at = its->late_at,
                             .busy = (double)its->busy_ns / length};
    for (uint32_t i = 0; i < n; i++) {
        if (survey->pool_of[i] != survey->pool_of[most] ||
            !(of[i].accepts || (of[i].rest != GT_NOBODY && of[i].rest == its->rest)))
            continue;
        sum.workers++;
        sum.all += of[i].its;
        sum.others += i == most ? 0 : (double)of[i].busy_ns / length;
    }
    sum.others /= sum.workers > 1 ? sum.workers - 1 : 1;
    return sum;
}

struct gt_accepts gt_accepts_find(const struct gt_survey *survey, struct gt_sections *sections)
{
    const struct gt_graph *graph = sections->graph;
    struct gt_accepts sum = {.worker = GT_NOBODY};
    if (!gt_graph_calls(graph, gt_is_accept))
        return sum;
    struct worker *of = gt_need(calloc(graph->lanes + 1, sizeof *of));
    uint32_t most = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        of[i] = look_at(survey, sections, i);
        most = of[i].its > of[most].its ? i : most;
    }
    if (of[most].its)
        sum = sum_up(survey, of, graph->lanes, most);
    free(of);
    return sum;
}
