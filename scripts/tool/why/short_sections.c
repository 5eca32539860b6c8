/* See short_sections.h. */
#include "short_sections.h"

#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

struct look {
    struct gt_short_sections found;
    const struct gt_graph *graph;
    uint32_t lock;
    unsigned callers; /* the releaser is so many of the program's functions up the stack */
    uint64_t from, to;
    struct gt_memo released; /* ns, by function */
};

/* Keeps the functions with the longest sums. `func` has a new sum. */
static void rank(struct gt_short_sections *s, const char *func, uint64_t ns)
{
    size_t i = 0;
    while (i < GT_RELEASERS_MOST && s->releaser[i].func != func)
        i++;
    if (i == GT_RELEASERS_MOST && s->releaser[--i].ns >= ns)
        return;
    for (; i && s->releaser[i - 1].ns < ns; i--)
        s->releaser[i] = s->releaser[i - 1];
    s->releaser[i].func = func;
    s->releaser[i].ns = ns;
}

static void note_releaser(struct look *l, const struct gt_lane_step *s, uint64_t ns)
{
    const struct gt_callers *stack = s->waker ? l->graph->stack[s->waker] : NULL;
    uint32_t i = stack ? gt_site_index(stack) : 0;
    for (unsigned up = l->callers; i && up && gt_site_caller(stack, i) < stack->n; up--)
        i = gt_site_caller(stack, i);
    if (s->by == GT_NOBODY || !i)
        return;
    uint64_t *sum = gt_need(gt_memo_at(&l->released, (uintptr_t)stack->frame[i].func));
    *sum += ns;
    l->found.released_ns += ns;
    rank(&l->found, stack->frame[i].func, *sum);
}

static bool is_for_mutex(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    static const char *const calls[] = {"pthread_mutex_", "mtx_", NULL};
    const char *call = gt_leaf_of(graph->spot[s->spot].stack);
    return gt_begins_with(call, calls) || gt_role_of(call) == GT_ROLE_CONDITION;
}

static uint64_t within(const struct look *l, uint64_t from, uint64_t to)
{
    from = from > l->from ? from : l->from;
    to = to < l->to ? to : l->to;
    return to > from ? to - from : 0;
}

static void look_at_thread(struct look *l, uint32_t thread)
{
    const struct gt_lane *lane = &l->graph->lane[thread];
    bool waited = false, any = false;
    uint64_t before = l->found.ns + l->found.woken_ns;
    GT_EACH_STEP_IN(s, l->graph, thread, l->from, l->to) {
        uint64_t ns = within(l, s->from, s->to);
        l->found.woken_ns += waited && s->kind == GT_SCHED ? ns : 0;
        waited = s->lock == l->lock && gt_graph_is_lock_wait(l->graph, s);
        if (!waited)
            continue;
        any = true;
        l->found.ns += ns;
        l->found.count++;
        l->found.others |= !is_for_mutex(l->graph, s);
        note_releaser(l, s, ns);
    }
    uint64_t its = l->found.ns + l->found.woken_ns - before;
    l->found.most_ns = its > l->found.most_ns ? its : l->found.most_ns;
    l->found.threads += any;
    l->found.life_ns += any ? within(l, lane->begin, lane->until) : 0;
}

static struct gt_short_sections look(const struct gt_graph *graph, uint32_t lock, uint64_t from,
                                     uint64_t to, unsigned callers)
{
    struct look l = {.graph = graph, .lock = lock, .callers = callers, .from = from, .to = to};
    for (uint32_t i = 0; i < graph->lanes; i++)
        look_at_thread(&l, i);
    if (!from && to >= graph->trace.ns) {
        l.found.briefs = graph->lock[lock]->briefs;
        l.found.brief_ns = graph->lock[lock]->brief_ns;
    }
    gt_memo_free(&l.released);
    return l.found;
}

/* Whether one function gave the lock up almost always, as a wrapper of the unlock does. */
static bool is_one(const struct gt_short_sections *s)
{
    return s->releaser[0].ns * 20 > s->released_ns * 19;
}

struct gt_short_sections gt_short_sections_of(const struct gt_graph *graph, uint32_t lock,
                                              uint64_t from, uint64_t to)
{
    enum { CALLERS_MOST = 2 };
    struct gt_short_sections first = look(graph, lock, from, to, 0), s = first;
    for (unsigned callers = 1; callers <= CALLERS_MOST && is_one(&s); callers++)
        s = look(graph, lock, from, to, callers);
    return is_one(&s) ? first : s;
}

double gt_short_sections_part(const struct gt_short_sections *s)
{
    return s->life_ns ? (double)(s->ns + s->brief_ns + s->woken_ns) / (double)s->life_ns : 0;
}

uint64_t gt_short_sections_bound(const struct gt_short_sections *s)
{
    return s->most_ns + (s->threads ? s->brief_ns / s->threads : 0);
}
