/*
 * Applies the events of v1 files (see validity.h): checks that goroutines, Ps, collections, tasks
 * and regions are in the states that events need.
 */
#include "need.h"
#include "validity_v1.h"

static bool runs(struct gt_check_v1 *c, const struct gt_check_source *s,
                 const struct gt_check_event *e, bool anybody)
{
    const struct gt_check_g *g = gt_check_g_of(c, e->g);
    if (g->state != GT_CHECK_RUNNING)
        return WRONG("goroutine %" PRIu64 " does not run", e->g);
    if (s->g != e->g)
        return WRONG("its P runs goroutine %" PRIu64 ", not %" PRIu64, s->g, e->g);
    return anybody || e->g || WRONG("no goroutine runs there");
}

static bool leave(struct gt_check_v1 *c, struct gt_check_source *s, const struct gt_check_event *e,
                  enum gt_check_state state)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    if (!runs(c, s, e, false))
        return false;
    g->state = state;
    if (e->type == GT_V1_GO_END)
        g->n_regions = 0;
    s->g = 0;
    return true;
}

static bool start(struct gt_check_v1 *c, struct gt_check_source *s, const struct gt_check_event *e)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    if (g->state != GT_CHECK_RUNNABLE)
        return WRONG("goroutine %" PRIu64 " starts, and is not runnable", e->g);
    if (s->g)
        return WRONG("goroutine %" PRIu64 " starts, and its P runs goroutine %" PRIu64, e->g, s->g);
    g->state = GT_CHECK_RUNNING;
    s->g = e->g;
    return true;
}

static bool create(struct gt_check_v1 *c, const struct gt_check_source *s,
                   const struct gt_check_event *e)
{
    struct gt_check_g *g = gt_check_g_of(c, e->arg[0]);
    if (!runs(c, s, e, true))
        return false;
    if (g->exists)
        return WRONG("goroutine %" PRIu64 " is created, and exists already", g->id);
    g->exists = true;
    g->state = GT_CHECK_RUNNABLE;
    return true;
}

static bool unblock(struct gt_check_v1 *c, const struct gt_check_source *s,
                    const struct gt_check_event *e)
{
    const struct gt_check_g *by = gt_check_g_of(c, e->g);
    struct gt_check_g *g = gt_check_g_of(c, e->arg[0]);
    if (by->state != GT_CHECK_RUNNING)
        return WRONG("goroutine %" PRIu64 " ends a wait, and does not run", e->g);
    if (!by->timer && s->g != e->g)
        return WRONG("its P runs goroutine %" PRIu64 ", not %" PRIu64, s->g, e->g);
    if (g->state != GT_CHECK_WAITING)
        return WRONG("goroutine %" PRIu64 " does not wait", g->id);
    g->state = GT_CHECK_RUNNABLE;
    return true;
}

/* A goroutine existed when recording began, and waits; or its call ends. */
static bool become(struct gt_check_v1 *c, const struct gt_check_event *e, enum gt_check_state from,
                   enum gt_check_state to)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    if (g->state != from)
        return WRONG("goroutine %" PRIu64 " is not %s", e->g,
                     from == GT_CHECK_RUNNABLE ? "runnable" : "in a call that lasts");
    g->state = to;
    return true;
}

static bool run_p(struct gt_check_v1 *c, struct gt_check_source *s, bool starts)
{
    if (s->runs == starts)
        return WRONG(starts ? "its P runs already" : "its P does not run");
    if (!starts && s->g)
        return WRONG("its P stops, and runs goroutine %" PRIu64, s->g);
    s->runs = starts;
    return true;
}

static bool open_range(struct gt_check_v1 *c, bool *open, bool begins, const char *what)
{
    if (*open == begins)
        return WRONG(begins ? "%s begins, and is under way" : "%s ends, and has not begun", what);
    *open = begins;
    return true;
}

static bool assist(struct gt_check_v1 *c, const struct gt_check_event *e)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    bool begins = e->type == GT_V1_GC_MARK_ASSIST_START;
    if (begins && g->assists)
        return WRONG("an assist begins, and is under way");
    g->assists = begins;
    g->exists = true;
    return true;
}

static bool region(struct gt_check_v1 *c, const struct gt_check_event *e)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    struct gt_check_region its = {e->arg[0], e->arg[2]};
    if (e->arg[1] > 1)
        return WRONG("a region neither begins nor ends");
    if (!e->arg[1]) {
        *GT_ADD(g->regions, g->n_regions) = its;
        return true;
    }
    if (!g->n_regions)
        return true; /* the region may have begun before the trace */
    const struct gt_check_region *inner = &g->regions[g->n_regions - 1];
    if (inner->task != its.task || inner->name != its.name)
        return WRONG("goroutine %" PRIu64 " ends a region that is not its innermost one", e->g);
    g->n_regions--;
    return true;
}

static bool task(struct gt_check_v1 *c, const struct gt_check_event *e)
{
    enum { OPEN = 1, ENDED };
    uint64_t *slot = gt_need(gt_memo_at(&c->tasks, e->arg[0]));
    bool begins = e->type == GT_V1_USER_TASK_CREATE;
    if (begins && *slot == OPEN)
        return WRONG("task %" PRIu64 " begins, and has begun already", e->arg[0]);
    *slot = begins ? OPEN : ENDED;
    return true;
}

/* Checks the string that an event has as a name or a kind. */
static bool has_texts(struct gt_check_v1 *c, const struct gt_check_event *e)
{
    switch (e->type) {
    case GT_V1_GO_START_LABEL:
    case GT_V1_USER_TASK_CREATE:
    case GT_V1_USER_REGION: return gt_check_has_string(c, e->arg[2]);
    case GT_V1_USER_LOG: return gt_check_has_string(c, e->arg[1]);
    default: return true;
    }
}

bool gt_check_happens(struct gt_check_v1 *c, struct gt_check_source *s,
                      const struct gt_check_event *e)
{
    if (!has_texts(c, e))
        return false;
    if (gt_check_blocks(e->type))
        return leave(c, s, e, GT_CHECK_WAITING);
    switch (e->type) {
    case GT_V1_PROC_START: return run_p(c, s, true);
    case GT_V1_PROC_STOP: return run_p(c, s, false);
    case GT_V1_GC_START: return open_range(c, &c->collects, true, "a collection");
    case GT_V1_GC_DONE: return open_range(c, &c->collects, false, "a collection");
    case GT_V1_STW_START: return open_range(c, &c->stops, true, "a stop of the world");
    case GT_V1_STW_DONE: return open_range(c, &c->stops, false, "a stop of the world");
    case GT_V1_GC_SWEEP_START: return open_range(c, &s->sweeps, true, "sweeping");
    case GT_V1_GC_SWEEP_DONE: return open_range(c, &s->sweeps, false, "sweeping");
    case GT_V1_GC_MARK_ASSIST_START:
    case GT_V1_GC_MARK_ASSIST_DONE: return assist(c, e);
    case GT_V1_GO_CREATE: return create(c, s, e);
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: return become(c, e, GT_CHECK_RUNNABLE, GT_CHECK_WAITING);
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_SYS_EXIT_LOCAL: return become(c, e, GT_CHECK_WAITING, GT_CHECK_RUNNABLE);
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: return start(c, s, e);
    case GT_V1_GO_END:
    case GT_V1_GO_STOP: return leave(c, s, e, GT_CHECK_DEAD);
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT: return leave(c, s, e, GT_CHECK_RUNNABLE);
    case GT_V1_GO_SYS_CALL: return runs(c, s, e, false);
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_UNBLOCK_LOCAL: return unblock(c, s, e);
    case GT_V1_USER_TASK_CREATE:
    case GT_V1_USER_TASK_END: return task(c, e);
    case GT_V1_USER_REGION: return region(c, e);
    default: return true;
    }
}
