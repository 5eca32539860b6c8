/* See steps.h: events of Ps. */
#include "steps.h"

#include "encoder/thread/procs.h"

void gt_tell_proc_status(const struct gt_happening *h)
{
    struct gt_p_row *p = gt_p_of(h->arg[0]);
    struct gt_m *m = gt_m_on(h->on);
    p->source.seq = 0;
    p->source.generation = gt_all->wanted.trace->generations;
    if (p->source.known)
        return;
    p->source.known = true;
    p->source.busy = h->arg[1] != GT_P_IDLE;
    p->state = (enum gt_p_state)h->arg[1];
    if (!p->source.busy || p->m)
        return;
    if (gt_all->wanted.together) {
        gt_do_proc_start(m, p, gt_first_ts());
        return;
    }
    p->m = m;
    m->p = p;
    if (gt_all->writes)
        gt_do_p_status(m, p, gt_first_ts());
}

/*
 * v1: moves the thread to another P. A thread may have several Ps at one time, one after the other.
 * Their starts and stops come in any order, but the thread's other events in the right one.
 */
static void change_p(struct gt_m *m, struct gt_p_row *p, uint64_t ns)
{
    if (m->g)
        gt_step_finish(m->g); /* a call that ends as another P begins ended without a P */
    gt_do_proc_stop(m, gt_ts_of(ns));
    gt_do_proc_start(m, p, gt_ts_of(ns));
    m->next_p = m->next_p == p ? NULL : m->next_p;
}

void gt_be_there(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = gt_m_on(h->on);
    struct gt_p_row *p = gt_reads_our_v1() && h->on->p < GT_PROCS_MAX ? gt_p_of(h->on->p) : NULL;
    if (p && p != m->p && !p->m && h->on->thread != GT_NO_THREAD)
        change_p(m, p, ns);
}

void gt_tell_proc_start(const struct gt_happening *h, uint64_t ns)
{
    struct gt_p_row *p = gt_p_of(h->p);
    struct gt_m *m = gt_m_on(h->on);
    p->source.seq++;
    p->source.known = p->source.busy = true;
    if (p->stops && p->m == m && p->stops_at == ns) {
        p->stops = false;
        return;
    }
    if (p->m)
        gt_step_finish_p(p->m);
    gt_step_finish_p(m);
    if (m->p && gt_reads_our_v1()) {
        m->next_p = p;
        return;
    }
    if (p->m)
        gt_do_proc_stop(p->m, gt_ts_of(ns)); /* only in damaged traces */
    gt_do_proc_stop(m, gt_ts_of(ns));
    gt_do_proc_start(m, p, gt_ts_of(ns));
}

void gt_tell_proc_stop(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = gt_m_on(h->on);
    if (gt_reads_our_v1() && m->next_p && m->next_p->id == h->on->p)
        m->next_p = NULL;
    if (!m->p || (gt_reads_our_v1() && m->p->id != h->on->p))
        return;
    m->p->source.busy = false;
    if (gt_reads_our_v1() && m->g && m->g->state == GT_G_SYSCALL && !m->next_p) {
        m->p->stops = true;
        m->p->stops_at = ns;
        return;
    }
    gt_do_proc_stop(m, gt_ts_of(ns));
    if (m->next_p)
        change_p(m, m->next_p, ns);
}

void gt_tell_proc_steal(const struct gt_happening *h, uint64_t ts)
{
    struct gt_p_row *p = gt_p_of(h->arg[0]);
    struct gt_m *m = gt_m_on(h->on);
    p->source.seq = h->arg[1];
    p->source.busy = false;
    ts = gt_put(m, GT_EV_PROC_STEAL, gt_after(m, &p->left, ts),
                GT_ARGS(p->number, gt_next_seq(m, &p->seq), h->arg[2]));
    if (p->m)
        p->m->p = NULL;
    p->m = NULL;
    p->state = GT_P_IDLE;
    p->left = (struct gt_cause){ts, m};
}
