/* See aligning.h. */
#include "aligning.h"

#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

#define TICKS ((double)(UINT64_C(1) << 32)) /* of gt_origin.ticks */
enum { S = 1000000000 };

/* All times are kept as differences to the first trace's, so that a double can hold them. */
static double *begins; /* ns */

static double ticks_per_unit(const struct gt_origin *o)
{
    return (double)o->ticks / TICKS;
}

static double difference(uint64_t a, uint64_t b)
{
    return (double)(int64_t)(a - b);
}

bool gt_align_same_clock(const struct gt_origin *a, const struct gt_origin *b)
{
    return a->ticks && b->ticks && a->hardware == b->hardware && (a->boot[0] || a->boot[1]) &&
           memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

/* The origin `ns` later, for a trace whose units are ns. */
static struct gt_origin move(struct gt_origin o, double ns_per_tick, double ns)
{
    uint64_t wall = o.wall_ns + (uint64_t)(int64_t)ns + S * (uint64_t)S; /* not below 0 */
    o.counter += (uint64_t)(int64_t)(ns / ns_per_tick);
    o.mono_ns += (uint64_t)(int64_t)ns;
    o.wall_s += wall / S - S;
    o.wall_ns = wall % S;
    o.units = 1;
    o.ticks = (uint64_t)(TICKS / ns_per_tick + 0.5);
    return o;
}

struct gt_origin gt_align_alone(const struct gt_trace *trace, double ns_per_unit)
{
    const struct gt_origin *o = &trace->origin;
    if (!o->ticks || ns_per_unit <= 0)
        return (struct gt_origin){0};
    return move(*o, ns_per_unit / ticks_per_unit(o),
                difference(trace->start, o->units) * ns_per_unit);
}

/* By the counter ------------------------------------------------------------------------------ */

/* A trace that names the same counter, but whose rate differs by over 0.1 %, has another clock. */
static bool counts_alike(const struct gt_aligned *a, const struct gt_trace *first,
                         double ns_per_tick)
{
    const struct gt_origin *o = &a->trace->origin;
    double own = a->trace->ns_per_unit / ticks_per_unit(o);
    return gt_align_same_clock(o, &first->origin) && own > 0.999 * ns_per_tick &&
           own < 1.001 * ns_per_tick;
}

/* ns per tick, from the largest file of that clock: it measured the frequency for longest. */
static double measure_tick(const struct gt_aligned *all, size_t n, const struct gt_trace *like)
{
    const struct gt_trace *largest = like;
    for (size_t i = 0; i < n; i++) {
        const struct gt_trace *t = all[i].trace;
        if (counts_alike(&all[i], like, like->ns_per_unit / ticks_per_unit(&like->origin)) &&
            t->size > largest->size)
            largest = t;
    }
    double scale = largest->format->v1 ? 0 : gt_trace_last_scale(largest);
    scale = scale > 0 ? scale : largest->ns_per_unit;
    return scale / ticks_per_unit(&largest->origin);
}

static void place_by_counter(struct gt_aligned *a, size_t i, const struct gt_origin *first,
                             double ns_per_tick)
{
    const struct gt_origin *o = &a->trace->origin;
    double scale = ticks_per_unit(o) * ns_per_tick;
    a->by = GT_BY_COUNTER;
    a->trace->scale = scale;
    begins[i] = difference(o->counter, first->counter) * ns_per_tick +
                difference(a->trace->start, o->units) * scale;
}

/* By the time of day or a mark ---------------------------------------------------------------- */

/* The time of day, in ns, when the trace began; false: the trace does not say. */
static bool wall_of(const struct gt_trace *t, uint64_t *ns)
{
    struct gt_origin o = gt_align_alone(t, t->ns_per_unit);
    *ns = o.ticks ? o.wall_s * S + o.wall_ns : t->wall_s * S + t->wall_ns;
    return o.ticks || t->wall_s;
}

static struct {
    const char *text;
    uint64_t ns;
    bool found;
} search;

static void look(void *arg, const struct gt_happening *h, uint64_t ns)
{
    (void)arg;
    bool same = h->type == GT_EV_USER_LOG &&
                (strcmp(h->text, search.text) == 0 || strcmp(h->more, search.text) == 0);
    if (same && !search.found)
        search.ns = ns;
    search.found |= same;
}

/* ns from the trace's beginning to the log. Reads the trace once more. */
static uint64_t find_mark(const struct gt_trace *of, const char *mark)
{
    struct gt_trace trace;
    const struct gt_audience audience = {.tell = look};
    gt_open_trace(&trace, of->path);
    trace.progress = NULL;
    trace.scale = of->scale;
    search.found = false;
    search.text = mark;
    gt_trace_read(&trace, &audience);
    if (!search.found)
        gt_fail(GT_EXIT_FAILED, "%s: there is no log `%s` in it", of->path, mark);
    return search.ns;
}

static void place_by_mark(struct gt_aligned *a, size_t i, const struct gt_trace *first,
                          const char *mark)
{
    a->by = GT_BY_MARK;
    begins[i] = begins[0] + difference(find_mark(first, mark), find_mark(a->trace, mark));
}

static void place_by_wall(struct gt_aligned *a, size_t i, const struct gt_trace *first)
{
    uint64_t ns, zero;
    const struct gt_trace *unknown = !wall_of(a->trace, &ns)  ? a->trace
                                     : !wall_of(first, &zero) ? first
                                                              : NULL;
    if (unknown)
        gt_fail(GT_EXIT_FAILED,
                "%s: it does not say when it was recorded; --mark=TEXT takes a log that stands in "
                "all of them",
                unknown->path);
    a->by = GT_BY_WALL;
    begins[i] = begins[0] + difference(ns, zero);
}

/* Placing all traces -------------------------------------------------------------------------- */

/* Compares all traces with the first one. */
static void place(struct gt_aligned *all, size_t n, const char *mark, double ns_per_tick)
{
    const struct gt_trace *first = all[0].trace;
    for (size_t i = 0; i < n; i++) {
        if (i ? counts_alike(&all[i], first, ns_per_tick) : first->origin.ticks != 0)
            place_by_counter(&all[i], i, &first->origin, ns_per_tick);
        else if (i && mark)
            place_by_mark(&all[i], i, first, mark);
        else if (i)
            place_by_wall(&all[i], i, first);
    }
}

/*
 * The parent's call of fork may begin in the unit of the fork's counter, and its event has the time
 * of that unit's beginning. One unit less, and what rounding to ns makes of it, is before that.
 */
static void place_fork(struct gt_aligned *a, const struct gt_origin *first, double ns_per_tick,
                       double zero)
{
    const struct gt_origin *o = &a->trace->origin;
    enum { ROUNDED = 2 };
    double ns = (difference(o->forked, first->counter) - ticks_per_unit(o)) * ns_per_tick - zero;
    ns -= ROUNDED;
    if (a->by == GT_BY_COUNTER && o->forker && ns > 0)
        a->forked = (uint64_t)ns;
}

void gt_align(struct gt_aligned *all, size_t n, const char *mark, struct gt_origin *origin)
{
    const struct gt_origin *first = &all[0].trace->origin;
    double ns_per_tick = first->ticks ? measure_tick(all, n, all[0].trace) : 0, zero;
    begins = gt_need(calloc(n, sizeof *begins));
    place(all, n, mark, ns_per_tick);
    zero = begins[0];
    for (size_t i = 0; i < n; i++)
        zero = begins[i] < zero ? begins[i] : zero;
    for (size_t i = 0; i < n; i++) {
        all[i].later = (uint64_t)(begins[i] - zero + 0.5);
        if (first->ticks)
            place_fork(&all[i], first, ns_per_tick, zero);
    }
    *origin = (struct gt_origin){0};
    if (first->ticks)
        *origin = move(*first, ns_per_tick, zero);
    origin->pid = origin->parent = origin->forker = origin->forked = 0;
    memset(origin->program, 0, sizeof origin->program);
    free(begins);
}
