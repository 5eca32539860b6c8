/* See steps.h: events of goroutines. */
#include "steps.h"

#include "joining.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOG_NS = 1000
}; /* see encoder/read/threads.c: a wait begins with the log of what it is for */

/* Whether `its` is that word, which v1 has as the start routine of older goroutines. */
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
    if (gt_reads_our_v1() && !g->its && !m->g) { /* g existed before the trace */
        g->unmade = true;
        g->state = GT_G_RUNNABLE;
        g->next_ns = ns;
        return;
    }
    /* The maker's thread is not wanted: g is created when it first runs, on its own thread. */
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

/* v1: the first status of a goroutine that was just created. */
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
 * Whether the status on m is of another thread's goroutine. In recordings by libgotrace a thread
 * has one goroutine; it writes statuses of others when it wakes them or they have not started.
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
        !m->g) { /* g was created meanwhile */
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

void gt_note_label(struct gt_m *m, struct gt_g_row *g, const struct gt_happening *h, uint64_t ts)
{
    if (!h->names || g->label == h->text)
        return;
    g->label = h->text;
    if (gt_all->writes)
        gt_put(m, GT_EV_GO_LABEL, ts, GT_ARGS(gt_writing_string(gt_name_of(g))));
}

/*
 * A v1 trace whose end is missing lacks the last events of some Ps: a goroutine was made there, or
 * what it did has no end. Adds that, so that g is in the state that its next event needs. false: it
 * cannot be, and that event is left out.
 */
static bool catch_up(struct gt_m *m, struct gt_g_row *g, enum gt_g_state state, uint64_t ts)
{
    if (!gt_all->wanted.trace->format->v1 || g->state == state)
        return true;
    gt_writing_mend();
    if (g->state == GT_G_NONE && state == GT_G_RUNNABLE && m->p)
        gt_do_create(m, g, NULL, ts);
    else if (g->state == GT_G_SYSCALL && g->m && g->m->p && g->m->p->state == GT_P_SYSCALL)
        gt_do_call_end(g->m, g, ts);
    else if (g->state == GT_G_SYSCALL && g->m)
        gt_do_call_end_blocked(g->m, g, ts);
    if (g->state == GT_G_RUNNING) {
        g->state = state;
        g->reason = "";
        gt_do_leave(g->m, g, ts);
    }
    if (g->state == GT_G_WAITING && state == GT_G_RUNNABLE)
        gt_do_unblock(m, g, NULL, ts);
    return g->state == state;
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
        gt_note_label(m, g, h, gt_ts_of(ns));
        return;
    }
    gt_step_finish(g);
    gt_be_there(h, ns); /* damage: a call that ended some time before had to give the P up */
    if (g->unmade && gt_all->writes && !gt_reads_our_v1())
        g->next_ns = ns;
    gt_step_make(m, g);
    if (m->g && m->g != g)
        catch_up(m, m->g, GT_G_RUNNABLE, gt_ts_of(ns));
    if (!catch_up(m, g, GT_G_RUNNABLE, gt_ts_of(ns)))
        return;
    gt_do_start(m, g, gt_ts_of(ns));
    gt_note_label(m, g, h, gt_ts_of(ns));
}

/* A thread that woke too early waits for its lock again, without another log: see threads.c. */
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
        m = named->m; /* v1 by Go does not say the thread, nor does ours if the thread has no P */
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
    /* The thread still has its P: it runs on, if the start follows. */
    if (gt_reads_our_v1() && m->g == g && m->p && m->p->state == GT_P_SYSCALL) {
        gt_step_begin(g, CALL_ENDS, h, ns);
        return;
    }
    if (gt_all->wanted.trace->format->v1 && g->state != GT_G_SYSCALL)
        gt_writing_mend(); /* the call's begin is missing */
    else
        gt_do_call_end_blocked(m, g, gt_ts_of(ns));
}

/* A wait that no thread ended has its event on the waiting thread. */
void gt_tell_unblock(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = gt_m_on(h->on);
    g->source.state = GT_G_RUNNABLE;
    g->source.seq++;
    gt_step_finish(g);
    /* The wait has ended already: an event on the P that it left, or another trace, said so. */
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
    if (catch_up(m, g, GT_G_WAITING, gt_ts_of(ns)))
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
    if (h->type == GT_EV_GO_DESTROY_SYSCALL && m->p) { /* the thread loses its P, too */
        m->p->state = GT_P_IDLE;
        m->p->m = NULL;
        m->p = NULL;
    }
}

/* Only in traces by Go: a thread of C calls Go. */
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
