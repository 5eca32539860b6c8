/* See joining.h. */
#include "joining.h"

#include "steps.h"
#include "waking.h"

/*
 * Ids of things that the source does not have. USHER: the thread that creates goroutines that
 * appear on no thread of their own or off the CPU. LENT: the P that threads borrow for a moment.
 * FORKED: the goroutine that a fork created, until the child's trace has its main thread.
 */
enum { USHER = 1 << 29 };
#define LENT (UINT64_C(1) << 40)
#define FORKED (UINT64_MAX - 1)

static const char unseen[] = GT_UNSEEN_TEXT;

/* Gives the thread the lent P if it has none; returns whether it did. */
static bool borrow(struct gt_m *m, uint64_t ts)
{
    bool lent = !m->p;
    if (lent)
        gt_do_proc_start(m, gt_p_of(LENT), ts);
    return lent;
}

static void give_back(struct gt_m *m, bool lent, uint64_t ts)
{
    if (lent)
        gt_do_proc_stop(m, ts);
}

void gt_join(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    enum gt_g_state state = g->state;
    const struct gt_callers *stack = g->stack;
    const char *reason = g->reason;
    bool there = !m->g || m->g == g || (state == GT_G_RUNNABLE && m->p);
    struct gt_m *on = there ? m : gt_m_of(USHER);
    bool lent = borrow(on, ts);
    gt_do_create(on, g, NULL, ts);
    if (state != GT_G_RUNNABLE)
        gt_do_start(on, g, ts);
    g->state = state;
    g->stack = stack;
    g->reason = reason;
    if (state == GT_G_WAITING || state == GT_G_SYSCALL)
        gt_do_leave(on, g, ts);
    give_back(on, lent, ts);
}

/* Forks --------------------------------------------------------------------------------------- */

/* When m's goroutine ran last: in v1 it may have stopped since, in a step not yet written. */
static uint64_t last_moment_of(const struct gt_m *m, uint64_t ts)
{
    uint64_t stopped = m->g->next_step != NOTHING ? gt_ts_of(m->g->next_ns) : ts;
    return stopped < ts ? stopped : ts;
}

/* The goroutine is created in the parent's stream, and waits in the child's. */
void gt_join_forked(struct gt_everybody *parent, uint64_t forker, struct gt_everybody *child,
                    uint64_t ns)
{
    gt_rewriting_use(parent);
    uint64_t ts = gt_ts_of(ns - parent->wanted.later);
    struct gt_m *by = (void *)(uintptr_t)gt_memo_find(&parent->m, forker + 1);
    bool runs = by && by->p && by->g && by->g->state == GT_G_RUNNING;
    ts = runs ? last_moment_of(by, ts) : ts;
    gt_rewriting_use(child);
    if (!runs || parent->left)
        return;
    struct gt_m *m = gt_m_of(child->wanted.trace->origin.pid);
    struct gt_g_row *g = gt_g_of(FORKED);
    child->writes = true;
    g->m = m;
    gt_rewriting_use(parent);
    gt_do_create(by, g, NULL, ts);
    gt_rewriting_use(child);
    gt_do_proc_start(m, gt_p_of(LENT), ts);
    gt_do_start(m, g, ts);
    g->state = GT_G_WAITING;
    g->reason = unseen;
    gt_do_leave(m, g, ts);
    gt_do_proc_stop(m, ts);
    child->forked = g;
}

/* Wakers ------------------------------------------------------------------------------------- */

static void wake(struct gt_m *m, const struct gt_woken *woken, const struct gt_callers *stack,
                 uint64_t ts)
{
    struct gt_everybody *own = gt_all, *its = *woken->whose;
    gt_all = its;
    struct gt_g_row *g = gt_g_known(woken->g);
    gt_all = own;
    if (g && g->state == GT_G_WAITING && !g->unmade && !its->left)
        gt_do_unblock(m, g, stack, ts);
}

void gt_join_wakes(struct gt_m *m, const struct gt_happening *h)
{
    struct gt_wakings *its = gt_all->wanted.wakings;
    while (its && its->next < its->n && its->at[its->next].ns < h->own_ns)
        its->next++;
    for (size_t i = its ? its->next : 0; its && i < its->n && its->at[i].ns == h->own_ns; i++) {
        if (its->at[i].by == m->g->id)
            wake(m, &its->at[i], h->stack, gt_ts_of(h->own_ns));
    }
}

/* The end ------------------------------------------------------------------------------------- */

/* Ends g's system call: g runs on if m still has the P that it called with, else g is runnable. */
static void end_call(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    if (m->p && m->p->state == GT_P_SYSCALL) {
        gt_do_call_end(m, g, ts);
        return;
    }
    g->last = (struct gt_cause){gt_put(m, GT_EV_GO_SYSCALL_END_BLOCKED, ts, NULL), m};
    g->state = GT_G_RUNNABLE;
    m->g = NULL;
}

/* Ends g. Only a running goroutine can end, so g first runs for no time, if need be on USHER. */
static void end(struct gt_g_row *g, uint64_t ts)
{
    struct gt_m *m = g->m && (!g->m->g || g->m->g == g) ? g->m : gt_m_of(USHER);
    if (g->state == GT_G_SYSCALL)
        end_call(m, g, ts);
    if (g->state == GT_G_WAITING)
        gt_do_unblock(m, g, NULL, ts);
    bool lent = borrow(m, ts);
    if (g->state == GT_G_RUNNABLE)
        gt_do_start(m, g, ts);
    gt_put(m, GT_EV_GO_DESTROY, ts, NULL);
    g->state = g->source.state = GT_G_NONE;
    m->g = NULL;
    give_back(m, lent, ts);
}

/* Takes the trace's heap out of the sum, in an event of USHER: readers require a P for it. */
static void take_heap(uint64_t ts)
{
    struct gt_m *usher = gt_m_of(USHER);
    if (!gt_all->heap[0] && !gt_all->heap[1])
        return;
    bool lent = borrow(usher, ts);
    gt_heap_leave(usher, ts);
    give_back(usher, lent, ts);
}

void gt_join_leave(uint64_t ns, bool whole)
{
    uint64_t ts = gt_ts_of(ns);
    gt_steps_finish();
    take_heap(ts);
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (g->state == GT_G_NONE || g->unmade)
            continue;
        if (!whole)
            gt_writing_account(
                &(struct gt_account_row){.g = g->number, .at = ts, .used.known = GT_KNOWN_NO_MORE});
        end(g, ts);
    }
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->m)
            gt_do_proc_stop(p->m, ts);
    }
    gt_state_trim();
    gt_all->writes = false;
    gt_all->left = true;
}
