/* Writes the beginning of a part and of a generation: see rewriting.h, rewriting_state.h. */
#include "rewriting_state.h"

/* Parts of traces by libgotrace --------------------------------------------------------------- */

static bool lives(const struct gt_g_row *g)
{
    return g->state != GT_G_NONE && gt_wants(g);
}

/* Writes the number of CPUs and the open tasks, once, on the first thread that runs. */
static void tell_once(struct gt_m *m, uint64_t ts, bool *told)
{
    if (*told)
        return;
    *told = true;
    if (gt_all->procs)
        gt_do_procs(m, ts);
    for (struct gt_rewritten_task *task = gt_all->first_task; task; task = task->next) {
        if (task->open)
            gt_do_task(m, task, ts);
    }
}

/* Begins the open regions, the outermost first. */
static void tell_regions(struct gt_m *m, struct gt_user_region *region, uint64_t ts)
{
    if (!region)
        return;
    tell_regions(m, region->outer, ts);
    gt_do_region(m, region, ts);
}

static void begin_running(struct gt_g_row *g, uint64_t ts)
{
    struct gt_m *m = g->m;
    if (g->its) {
        gt_do_create(m, g, NULL, ts);
        gt_do_start(m, g, ts);
        return;
    }
    g->state = GT_G_RUNNING;
    gt_do_status(m, g, NULL, ts);
    m->g = g;
}

/* The thread of g runs for no time and repeats what readers need; then g is in its real state. */
static void introduce(struct gt_g_row *g, struct gt_p_row *p, uint64_t ts, bool *told)
{
    struct gt_m *m = g->m;
    enum gt_g_state state = g->state;
    const struct gt_callers *stack = g->stack;
    const char *reason = g->reason;
    gt_do_proc_start(m, p, ts);
    begin_running(g, ts);
    tell_once(m, ts, told);
    if (*g->label)
        gt_do_label(m, g, ts);
    tell_regions(m, g->regions, ts);
    g->state = state;
    g->stack = stack;
    g->reason = reason;
    if (state == GT_G_WAITING && g->lock.key)
        gt_do_log(m, &g->lock, ts);
    if (state != GT_G_RUNNING)
        gt_do_leave(m, g, ts);
    m->introduced = true;
}

/* Introduces the threads without a P, one after the other on the P `lent`. */
static void introduce_the_absent(struct gt_p_row *lent, uint64_t ts, bool *told)
{
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (!lives(g) || !g->m || g->m->p || !gt_wants_thread(g->m))
            continue;
        introduce(g, lent, ts, told);
        gt_do_proc_stop(g->m, ts);
    }
}

/*
 * Introduces the threads that have a P. A thread in a call whose P runs began the call without the
 * P, and took it to write something. The P stops and starts, so that the end of the call does not
 * lose it.
 */
static void introduce_the_present(uint64_t ts, bool *told)
{
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (!lives(g) || !g->m || !g->m->p || !gt_wants_thread(g->m))
            continue;
        struct gt_p_row *p = g->m->p;
        bool taken = g->state == GT_G_SYSCALL && p->state == GT_P_RUNNING;
        introduce(g, p, ts, told);
        if (taken) {
            gt_do_proc_stop(g->m, ts);
            gt_do_proc_start(g->m, p, ts);
        }
    }
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->m && !p->m->introduced) /* the thread does not run its goroutine yet */
            gt_do_proc_start(p->m, p, ts);
    }
}

/*
 * Whether g was created and has not started. Such a g needs a create event, as statuses of some
 * formats lack the start routine.
 */
static bool is_unstarted(const struct gt_g_row *g)
{
    return lives(g) && !g->m && g->its && g->state == GT_G_RUNNABLE;
}

static bool is_maker_running(const struct gt_g_row *g)
{
    const struct gt_m *m = g->maker;
    return m && m->p && m->g && m->g->state == GT_G_RUNNING && lives(m->g) && gt_wants_thread(m);
}

/*
 * Creates the unstarted goroutines whose maker does not run. No goroutine is shown as the maker:
 * the create event stands on a thread that has no goroutine yet.
 */
static void make_the_unstarted(struct gt_p_row *lent, uint64_t ts)
{
    struct gt_m *any = NULL;
    for (struct gt_g_row *g = gt_all->first_g; g && !any; g = g->next)
        any = g->m && lives(g) && gt_wants_thread(g->m) ? g->m : NULL;
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        struct gt_m *m = g->maker && gt_wants_thread(g->maker) ? g->maker : any;
        if (!is_unstarted(g) || is_maker_running(g))
            continue;
        g->unmade = !m;
        if (!m)
            continue;
        struct gt_p_row *own = m->p;
        gt_do_proc_start(m, lent, ts);
        gt_do_create(m, g, NULL, ts);
        gt_do_proc_stop(m, ts);
        m->p = own;
    }
}

/* Writes goroutines without a thread: the unstarted by their maker, all others by a status. */
static void tell_those_without_a_thread(uint64_t ts)
{
    struct gt_m *teller = NULL;
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (g->m && g->m->introduced && (!teller || g->m->p))
            teller = g->m;
    }
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        struct gt_m *m = teller ? teller : g->maker;
        if (is_unstarted(g)) {
            if (is_maker_running(g))
                gt_do_create(g->maker, g, NULL, ts);
        } else if (lives(g) && !g->m && m) {
            gt_do_status(m, g, NULL, ts);
            g->unmade = false;
        }
    }
}

static void begin_with_threads(uint64_t ts)
{
    struct gt_p_row *lent = gt_all->first_p;
    bool told = false;
    if (!lent)
        return;
    struct gt_m *holder = lent->m;
    enum gt_p_state state = lent->state;
    make_the_unstarted(lent, ts);
    introduce_the_absent(lent, ts, &told);
    lent->m = holder;
    lent->state = state;
    introduce_the_present(ts, &told);
    tell_those_without_a_thread(ts);
}

/* Statuses ------------------------------------------------------------------------------------ */

static bool is_on_thread(const struct gt_g_row *g)
{
    return g->state == GT_G_RUNNING || g->state == GT_G_SYSCALL;
}

/*
 * The thread for events that belong to no thread in particular, preferably one with a P. If all
 * threads have ended: the maker of a goroutine without a thread.
 */
static struct gt_m *find_teller(void)
{
    struct gt_m *teller = NULL, *maker = NULL;
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (lives(g) && !g->m && g->maker && gt_wants_thread(g->maker))
            maker = g->maker;
        if (g->m && lives(g) && gt_wants_thread(g->m) && (!teller || (g->m->p && !teller->p)))
            teller = g->m;
    }
    if (!teller && maker)
        return maker;
    return teller ? teller : gt_m_of(GT_WRITING_FIRST); /* all of Go's goroutines may wait */
}

/*
 * Writes the statuses of Ps. A P that no thread has gets its status when a thread takes it; but in
 * a trace by Go, where threads steal Ps, at once.
 */
static void tell_ps(struct gt_m *teller, uint64_t ts)
{
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->m && gt_wants_thread(p->m))
            gt_do_p_status(p->m, p, ts);
        else if (!gt_all->wanted.trace->ours)
            gt_do_p_status(teller, p, ts);
    }
}

/* Writes what Go's garbage collector is doing: collection, sweeps, mark assists. */
static void tell_collection(struct gt_m *teller, uint64_t ts)
{
    for (struct gt_g_row *g = gt_all->first_g; g && gt_all->collects; g = g->next) {
        if (g->state != GT_G_RUNNING || !g->m || !g->m->p)
            continue;
        gt_put(g->m, GT_EV_GC_ACTIVE, ts, GT_ARGS(gt_next_seq(g->m, &gt_gc_seq)));
        gt_all->collects_told = true;
        break;
    }
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->sweep.open)
            gt_put(p->m ? p->m : teller, GT_EV_GC_SWEEP_ACTIVE, ts, GT_ARGS(p->number));
        p->sweep.told = p->sweep.open;
    }
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        g->assist.told = g->assist.open && g->state != GT_G_NONE && !g->unborn;
        if (g->assist.told)
            gt_put(is_on_thread(g) ? g->m : teller, GT_EV_GC_MARK_ASSIST_ACTIVE, ts,
                   GT_ARGS(g->number));
    }
}

/* stacks: statuses carry the stacks of waits, as no earlier event did. */
static void tell_statuses(uint64_t ts, bool stacks)
{
    struct gt_m *teller = find_teller();
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next)
        p->told = false;
    tell_ps(teller, ts);
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        bool own = g->m && (gt_all->wanted.trace->ours || is_on_thread(g));
        /* A v1 status carries the start routine. */
        const struct gt_callers *stack = g->stack && !gt_format->v1 ? g->stack : g->its;
        if (lives(g) && !g->unmade && !g->unborn)
            gt_do_status(own ? g->m : teller, g, stacks ? stack : NULL, ts);
    }
    if (!gt_format->v1)
        tell_collection(teller, ts);
}

void gt_begin_generation(uint64_t ts)
{
    gt_state_trim();
    tell_statuses(ts, false);
}

void gt_begin_part(uint64_t ts)
{
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (g->state != GT_G_NONE)
            g->began = g->state == GT_G_RUNNING || g->state == GT_G_RUNNABLE ? RAN : WAITED;
    }
    if (gt_all->wanted.trace->ours)
        begin_with_threads(ts);
    else
        tell_statuses(ts, true);
}
