/* See steps.h: of goroutines. */
#include "steps.h"

#include "joining.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOG_NS = 1000
}; /* see encoder/read/threads.c: a wait begins with the log of what it is for */

/* A word of v1's, for where somebody began who was there before. */
static bool is_word(const struct gt_callers *its, const char *word)
{
    return its && its->n == 1 && !*its->frame[0].file && strcmp(its->frame[0].func, word) == 0;
}

static const struct gt_callers *routine_of(const struct gt_callers *its)
{
    bool none = !its || !its->n || is_word(its, "main") || is_word(its, "(unknown)");
    return none ? NULL : its;
}

void gt_tell_create(const struct gt_happening *h, uint64_t ns)
{
    uint64_t id = h->g ? h->g : h->arg[0];
    struct gt_g_row *g = gt_g_of(id);
    struct gt_m *m = gt_m_on(h->on);
    g->source.state = GT_G_RUNNABLE;
    g->source.seq = 0;
    g->source.generation = gt_all->wanted.trace->generations;
    g->its = routine_of(h->its);
    g->first |= is_word(h->its, "main");
    g->m = NULL;
    g->maker = m;
    if (gt_reads_our_v1() && !g->its && !m->g) { /* it was there before */
        g->unmade = true;
        g->state = GT_G_RUNNABLE;
        g->next_ns = ns;
        return;
    }
    /* Who is not made by its thread is by itself, where that one is not wanted. */
    if (gt_all->writes && gt_wants(g) && !gt_wants_thread(m)) {
        g->unmade = true;
        g->state = GT_G_RUNNABLE;
        g->next_ns = ns;
        return;
    }
    if (h->type == GT_EV_GO_CREATE_BLOCKED)
        gt_do_create_waiting(m, g, h->stack, gt_ts_of(ns));
    else
        gt_do_create(m, g, h->stack, gt_ts_of(ns));
    g->source.state = g->state;
}

/* Of v1, for a goroutine that was just created. */
static void first_status(struct gt_m *m, struct gt_g_row *g, const struct gt_happening *h,
                         uint64_t ts)
{
    g->unmade = false;
    g->stack = NULL;
    g->reason = "";
    if (h->state == GT_G_SYSCALL && m->p) {
        gt_do_create(m, g, NULL, ts);
        gt_do_start(m, g, ts);
        g->state = GT_G_SYSCALL;
        gt_do_leave(m, g, ts);
        return;
    }
    g->state = h->state;
    if (h->state == GT_G_SYSCALL)
        g->m = m;
    if (gt_all->wanted.together)
        gt_join(m, g, ts);
    else
        gt_do_status(m, g, NULL, ts);
}

/*
 * In our recordings a thread has one goroutine. Of another it tells where it wakes that, or where
 * that has not begun.
 */
static bool tells_of_others(const struct gt_m *m, const struct gt_happening *h)
{
    bool begun = h->state != GT_G_RUNNABLE || m->p;
    return !begun || (m->last_g && m->last_g->id != h->g);
}

void gt_tell_status(const struct gt_happening *h, uint64_t ts)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = gt_m_on(h->on);
    bool on_thread = h->state == GT_G_RUNNING || h->state == GT_G_SYSCALL;
    bool fresh = g->source.state == GT_G_NONE;
    g->source.seq = h->seq;
    g->source.generation = gt_all->wanted.trace->generations;
    if (gt_reads_our_v1() && g->unmade) {
        g->source.state = h->state;
        first_status(m, g, h, ts);
        return;
    }
    if (gt_reads_our_v1() && g->state == GT_G_RUNNABLE && h->seq && m->p &&
        !m->g) { /* it was made meanwhile */
        gt_do_start(m, g, ts);
        g->state = g->source.state = h->state;
        gt_do_leave(m, g, ts);
        return;
    }
    if (!fresh)
        return;
    g->source.state = g->state = h->state;
    g->its = h->its ? h->its : g->its;
    g->stack = on_thread || h->state == GT_G_WAITING ? h->stack : NULL;
    if (h->state == GT_G_RUNNING)
        g->stack = NULL;
    if (!g->its && (h->state == GT_G_RUNNABLE || h->state == GT_G_RUNNING))
        g->its = h->stack;
    if (on_thread || (gt_reads_ours() && !tells_of_others(m, h)))
        g->m = m;
    if (on_thread)
        m->last_g = m->g = g;
    if (gt_all->wanted.together)
        gt_join(m, g, gt_first_ts());
    else if (gt_all->writes && gt_wants(g))
        gt_do_status(m, g, gt_format->v1 ? g->its : h->stack, gt_first_ts());
}

void gt_note_label(struct gt_m *m, struct gt_g_row *g, const char *label, uint64_t ts)
{
    if (!*label || g->label == label)
        return;
    g->label = label;
    if (gt_all->writes)
        gt_put(m, GT_EV_GO_LABEL, ts, GT_ARGS(gt_writing_string(gt_name_of(g))));
}

void gt_tell_start(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = gt_m_on(h->on);
    g->source.state = GT_G_RUNNING;
    g->source.seq += !h->part;
    g->woke_ns = ns;
    gt_be_there(h, ns);
    if (gt_step_completes(g, m, ns)) {
        int step = g->next_step;
        g->next_step = NOTHING;
        if (step == CALL_ENDS) {
            g->call_ns = ns;
            gt_do_call_end(m, g, gt_ts_of(ns));
        }
        gt_note_label(m, g, h->text, gt_ts_of(ns));
        return;
    }
    gt_step_finish(g);
    if (g->unmade && gt_all->writes && !gt_reads_our_v1())
        g->next_ns = ns;
    gt_step_make(m, g);
    gt_do_start(m, g, gt_ts_of(ns));
    gt_note_label(m, g, h->text, gt_ts_of(ns));
}

/* A wait that was in vain goes on to be for the same: see threads.c. */
static void note_wait(struct gt_g_row *g, const char *reason, uint64_t ns)
{
    bool again = g->lock_ns < g->woke_ns;
    if (again ? g->woke_ns < ns : g->lock_ns + LOG_NS < ns || !strstr(reason, "sync"))
        g->lock.key = NULL;
}

void gt_tell_leave(const struct gt_happening *h, enum gt_g_state state, uint64_t ns)
{
    struct gt_m *m = gt_m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    gt_join_wakes(m, h);
    g->source.state = state;
    bool preempted = state == GT_G_RUNNABLE && strcmp(h->text, "preempted") == 0;
    if (preempted && gt_reads_ours() && ((gt_reads_our_v1() && !h->stack) || g->call_ns == ns)) {
        gt_step_begin(g, STOPS, h, ns);
        return;
    }
    note_wait(g, h->text, ns);
    g->state = state;
    g->reason = h->text;
    g->stack = h->stack;
    if (state == GT_G_SYSCALL && m->p)
        m->p->source.seq = h->arg[0];
    gt_do_leave(m, g, gt_ts_of(ns));
}

void gt_tell_call_end(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *named = h->g ? gt_g_of(h->g) : NULL;
    struct gt_m *m = gt_m_on(h->on);
    if (named && (!gt_reads_our_v1() || h->on->thread == GT_NO_THREAD))
        m = named->m; /* v1 by Go does not say where, nor does ours of a thread that has no P */
    struct gt_g_row *g = named || !m ? named : m->g;
    if (!g || !m)
        return;
    if (h->type == GT_EV_GO_SYSCALL_END) {
        g->source.state = GT_G_RUNNING;
        g->call_ns = ns;
        gt_do_call_end(m, g, gt_ts_of(ns));
        return;
    }
    g->source.state = GT_G_RUNNABLE;
    g->source.seq += h->g != 0;
    /* With the P that it had: the thread goes on, as soon as it is said so. */
    if (gt_reads_our_v1() && m->g == g && m->p && m->p->state == GT_P_SYSCALL) {
        gt_step_begin(g, CALL_ENDS, h, ns);
        return;
    }
    uint64_t ts = gt_put(m, GT_EV_GO_SYSCALL_END_BLOCKED, gt_ts_of(ns), NULL);
    g->last = (struct gt_cause){ts, m};
    g->state = GT_G_RUNNABLE;
    g->m = m;
    m->g = m->g == g ? NULL : m->g;
}

/* A wait that ends by itself is ended by its own thread. */
void gt_tell_unblock(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = gt_m_on(h->on);
    g->source.state = GT_G_RUNNABLE;
    g->source.seq++;
    gt_step_finish(g);
    /* What it waits for was told of the P that it has left; or by another trace. */
    if (g->state == GT_G_RUNNABLE)
        return;
    bool own = (gt_reads_our_v1() && !m->g) || (gt_wants(g) && !gt_wants_thread(m));
    if (own && g->m)
        m = g->m;
    if (g->unmade)
        gt_step_make(m, g);
    if (g->unborn) {
        gt_do_create(m, g, NULL, gt_ts_of(ns));
        return;
    }
    gt_do_unblock(m, g, h->stack, gt_ts_of(ns));
}

void gt_tell_destroy(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = gt_m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    g->source.state = g->state = GT_G_NONE;
    gt_put(m, h->type, gt_ts_of(ns), NULL);
    g->m = NULL;
    m->g = NULL;
    if (h->type == GT_EV_GO_DESTROY_SYSCALL && m->p) { /* and its P goes with it */
        m->p->state = GT_P_IDLE;
        m->p->m = NULL;
        m->p = NULL;
    }
}

/* Go's alone: a thread of C calls Go. */
void gt_tell_create_syscall(const struct gt_happening *h, uint64_t ts)
{
    struct gt_g_row *g = gt_g_of(h->arg[0]);
    struct gt_m *m = gt_m_on(h->on);
    g->state = g->source.state = GT_G_SYSCALL;
    g->source.seq = g->seq = 0;
    g->source.generation = gt_all->wanted.trace->generations;
    g->m = m;
    m->g = g;
    ts = gt_put(m, h->type, ts, GT_ARGS(g->number));
    g->last = (struct gt_cause){ts, m};
}
