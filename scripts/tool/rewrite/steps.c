/* See steps.h. */
#include "steps.h"

enum { NO_THREAD_OF_P = 1 << 30 }; /* v1: plus a P: stands for its thread while it has none */

bool gt_reads_our_v1(void)
{
    return gt_all->wanted.trace->format->v1 && gt_reads_ours();
}

bool gt_reads_ours(void)
{
    return gt_all->wanted.trace->ours;
}

struct gt_m *gt_m_on(const struct gt_stream *stream)
{
    if (stream->thread != GT_NO_THREAD)
        return gt_m_of(stream->thread);
    return gt_m_of(NO_THREAD_OF_P + stream->p);
}

uint64_t gt_first_ts(void)
{
    return gt_ts_of(gt_all->wanted.from);
}

void gt_step_finish(struct gt_g_row *g)
{
    int step = g->next_step;
    struct gt_m *m = g->m;
    uint64_t ts = gt_ts_of(g->next_ns);
    g->next_step = NOTHING;
    if (!m)
        return; /* damage: it never ran */
    if (step == STOPS) {
        g->state = GT_G_RUNNABLE;
        g->reason = g->next_reason;
        g->stack = g->next_stack;
        gt_do_leave(m, g, ts);
    } else if (step == CALL_ENDS) {
        gt_do_proc_stop(m, ts);
        gt_do_call_end_blocked(m, g, ts);
    }
}

void gt_step_begin(struct gt_g_row *g, int step, const struct gt_happening *h, uint64_t ns)
{
    g->next_step = step;
    g->next_ns = ns;
    g->next_reason = h->text;
    g->next_stack = h->stack;
}

bool gt_step_completes(struct gt_g_row *g, const struct gt_m *m, uint64_t ns)
{
    return g->next_step != NOTHING && g->next_ns == ns && g->m == m;
}

void gt_step_finish_p(struct gt_m *m)
{
    if (m->p && m->p->stops)
        gt_do_proc_stop(m, gt_ts_of(m->p->stops_at));
}

void gt_step_make(struct gt_m *m, struct gt_g_row *g)
{
    if (g->unmade)
        gt_do_create(m, g, NULL, gt_ts_of(g->next_ns));
}

void gt_steps_finish(void)
{
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        gt_step_finish(g);
        if (gt_all->writes && g->unmade && gt_wants_thread(g->maker))
            gt_step_make(g->maker, g);
    }
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->m)
            gt_step_finish_p(p->m);
    }
}
