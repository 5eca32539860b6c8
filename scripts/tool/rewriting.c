/* See rewriting.h. What happens in the source, step by step. */
#include "rewriting.h"

#include "rewriting_state.h"

#include "encoder/procs.h"
#include "encoder/read/need.h"

#include <stdlib.h>

enum { GENERATION_NS = 1000000000, GENERATION_BYTES = 64 << 20 };
enum { NO_THREAD_OF_P = 1 << 30 }; /* v1: what a P does before a thread has it, as if by one */
enum { LOG_NS = 1000 };            /* see threads.c: a wait begins with the log of what it is for */

static struct {
    bool begun, over;
    uint64_t generations;     /* that are over */
    uint64_t generation;      /* of the source */
    uint64_t last_generation; /* with which it was over */
    uint64_t generation_ns;   /* when ours began */
    uint64_t ns;              /* of the last event */
} part;

static uint64_t ts_of(uint64_t ns)
{
    return ns + 1; /* 0 is none */
}

static bool v1(void)
{
    return gt_all.wanted.trace->format->v1;
}

static bool ours(void)
{
    return gt_all.wanted.trace->ours;
}

static struct gt_m *m_on(const struct gt_stream *stream)
{
    if (stream->thread != GT_NO_THREAD)
        return gt_m_of(stream->thread);
    return gt_m_of(NO_THREAD_OF_P + stream->p);
}

/* Steps that are told in two --------------------------------------------------------------------
 */

/*
 * v1 says that a goroutine stops where a page ends, and goes on at the same time where the next one
 * begins; and that a call ends, and, as another event, that the goroutine runs. After a call
 * formats have various things that take no time. So such a step is done when it is seen what
 * follows.
 */
static void finish_step(struct gt_g_row *g)
{
    int step = g->next_step;
    struct gt_m *m = g->m;
    uint64_t ts = ts_of(g->next_ns);
    g->next_step = NOTHING;
    if (step == STOPS) {
        g->state = GT_G_RUNNABLE;
        g->reason = g->next_reason;
        g->stack = g->next_stack;
        gt_do_leave(m, g, ts);
    } else if (step == CALL_ENDS) {
        gt_do_proc_stop(m, ts);
        ts = gt_put(m, GT_EV_GO_SYSCALL_END_BLOCKED, ts, NULL);
        g->last = (struct gt_cause){ts, m};
        g->state = GT_G_RUNNABLE;
        m->g = NULL;
    }
}

static void begin_step(struct gt_g_row *g, int step, const struct gt_happening *h, uint64_t ns)
{
    g->next_step = step;
    g->next_ns = ns;
    g->next_reason = h->text;
    g->next_stack = h->stack;
}

/* Whether what was told before and the start that comes now are nothing, or the end of a call. */
static bool completes_step(struct gt_g_row *g, const struct gt_m *m, uint64_t ns)
{
    return g->next_step != NOTHING && g->next_ns == ns && g->m == m;
}

/* A P of v1 that stopped for a moment in a call. */
static void finish_p(struct gt_m *m)
{
    if (m->p && m->p->stops)
        gt_do_proc_stop(m, ts_of(m->p->stops_at));
}

/* A goroutine of v1 that was there when the trace began: made when it is known what it does. */
static void make(struct gt_m *m, struct gt_g_row *g)
{
    if (g->unmade)
        gt_do_create(m, g, NULL, ts_of(g->next_ns));
}

/* Time has gone on: what would have made something else of it had to be at the same time. */
static void finish_all(void)
{
    for (struct gt_g_row *g = gt_all.first_g; g; g = g->next) {
        finish_step(g);
        if (gt_all.writes && g->unmade && gt_wants_thread(g->maker))
            make(g->maker, g);
    }
    for (struct gt_p_row *p = gt_all.first_p; p; p = p->next) {
        if (p->m)
            finish_p(p->m);
    }
}

/* Ps ------------------------------------------------------------------------------------------ */

/* What is told late has been so from the beginning. */
static uint64_t first_ts(void)
{
    return ts_of(gt_all.wanted.from);
}

static void proc_status(const struct gt_happening *h)
{
    struct gt_p_row *p = gt_p_of(h->arg[0]);
    struct gt_m *m = m_on(h->on);
    p->source.seq = 0;
    if (p->source.known)
        return;
    p->source.known = true;
    p->source.busy = h->arg[1] != GT_P_IDLE;
    p->state = (enum gt_p_state)h->arg[1];
    if (!p->source.busy || p->m)
        return;
    p->m = m;
    m->p = p;
    if (gt_all.writes)
        gt_do_p_status(m, p, first_ts());
}

/*
 * v1: of what one thread does at the same time on several Ps, one after the other, it is told in
 * any order that it has and loses those. What it does there is told in the right one.
 */
static void change_p(struct gt_m *m, struct gt_p_row *p, uint64_t ns)
{
    struct gt_g_row *g = m->g;
    if (m->p && g && g->state == GT_G_RUNNING) {
        g->next_step = NOTHING;
        g->state = GT_G_RUNNABLE;
        g->reason = "preempted";
        g->stack = NULL;
        gt_do_leave(m, g, ts_of(ns));
    }
    gt_do_proc_stop(m, ts_of(ns));
    gt_do_proc_start(m, p, ts_of(ns));
    m->next_p = m->next_p == p ? NULL : m->next_p;
}

/* It is on this P that something happens. */
static void be_there(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    struct gt_p_row *p = v1() && h->on->p < GT_PROCS_MAX ? gt_p_of(h->on->p) : NULL;
    if (p && p != m->p && !p->m && h->on->thread != GT_NO_THREAD)
        change_p(m, p, ns);
}

static void proc_start(const struct gt_happening *h, uint64_t ns)
{
    struct gt_p_row *p = gt_p_of(h->p);
    struct gt_m *m = m_on(h->on);
    p->source.seq++;
    p->source.known = p->source.busy = true;
    if (p->stops && p->m == m && p->stops_at == ns) {
        p->stops = false;
        return;
    }
    if (p->m)
        finish_p(p->m);
    finish_p(m);
    if (m->p && v1()) {
        m->next_p = p;
        return;
    }
    if (p->m)
        gt_do_proc_stop(p->m, ts_of(ns)); /* as no whole trace has it */
    gt_do_proc_stop(m, ts_of(ns));
    gt_do_proc_start(m, p, ts_of(ns));
}

static void proc_stop(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    if (v1() && m->next_p && m->next_p->id == h->on->p)
        m->next_p = NULL;
    if (!m->p || (v1() && m->p->id != h->on->p))
        return;
    m->p->source.busy = false;
    if (v1() && m->g && m->g->state == GT_G_SYSCALL && !m->next_p) {
        m->p->stops = true;
        m->p->stops_at = ns;
        return;
    }
    gt_do_proc_stop(m, ts_of(ns));
    if (m->next_p)
        change_p(m, m->next_p, ns);
}

static void proc_steal(const struct gt_happening *h, uint64_t ts)
{
    struct gt_p_row *p = gt_p_of(h->arg[0]);
    struct gt_m *m = m_on(h->on);
    p->source.seq = h->arg[1];
    p->source.busy = false;
    ts = gt_put(m, GT_EV_PROC_STEAL, gt_after(m, &p->left, ts),
                GT_ARGS(p->id, gt_next_seq(m, &p->seq), h->arg[2]));
    if (p->m)
        p->m->p = NULL;
    p->m = NULL;
    p->state = GT_P_IDLE;
    p->left = (struct gt_cause){ts, m};
}

/* Goroutines ---------------------------------------------------------------------------------- */

/* Where v1 does not know. */
static bool is_routine(const struct gt_callers *its)
{
    return its && its->n &&
           !(its->n == 1 && !*its->frame[0].file &&
             (strcmp(its->frame[0].func, "main") == 0 ||
              strcmp(its->frame[0].func, "(unknown)") == 0));
}

static void go_create(const struct gt_happening *h, uint64_t ns)
{
    uint64_t id = h->g ? h->g : h->arg[0];
    struct gt_g_row *g = gt_g_of(id);
    struct gt_m *m = m_on(h->on);
    g->source.state = GT_G_RUNNABLE;
    g->source.seq = 0;
    g->its = is_routine(h->its) ? h->its : NULL;
    g->m = NULL;
    g->maker = m;
    if (v1() && !g->its && !m->g) { /* it was there before */
        g->unmade = true;
        g->state = GT_G_RUNNABLE;
        g->next_ns = ns;
        return;
    }
    /* Who is not made by its thread is by itself, where that one is not wanted. */
    if (gt_all.writes && gt_wants(g) && !gt_wants_thread(m)) {
        g->unmade = true;
        g->state = GT_G_RUNNABLE;
        g->next_ns = ns;
        return;
    }
    if (gt_wants(g))
        gt_do_create(m, g, h->stack, ts_of(ns));
    g->state = GT_G_RUNNABLE;
    if (h->type != GT_EV_GO_CREATE_BLOCKED)
        return;
    g->state = g->source.state = GT_G_WAITING;
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
    gt_do_status(m, g, NULL, ts);
}

static void go_status(const struct gt_happening *h, uint64_t ts)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = m_on(h->on);
    bool on_thread = h->state == GT_G_RUNNING || h->state == GT_G_SYSCALL;
    bool fresh = g->source.state == GT_G_NONE;
    g->source.seq = h->seq;
    if (v1() && g->unmade) {
        g->source.state = h->state;
        first_status(m, g, h, ts);
        return;
    }
    if (v1() && g->state == GT_G_RUNNABLE && h->seq && m->p && !m->g) { /* it was made meanwhile */
        gt_do_start(m, g, ts);
        g->state = g->source.state = h->state;
        gt_do_leave(m, g, ts);
        return;
    }
    if (!fresh)
        return;
    g->source.state = g->state = h->state;
    g->stack = on_thread || h->state == GT_G_WAITING ? h->stack : NULL;
    if (h->state == GT_G_RUNNING)
        g->stack = NULL;
    if (!g->its && (h->state == GT_G_RUNNABLE || h->state == GT_G_RUNNING))
        g->its = h->stack;
    if (on_thread || ours())
        g->m = m;
    if (on_thread)
        m->g = g;
    if (ours() && h->state == GT_G_RUNNABLE && h->arg[1] == GT_NO_THREAD && !m->p)
        g->m = NULL; /* it has not begun */
    if (gt_all.writes && gt_wants(g))
        gt_do_status(m, g, h->stack, first_ts());
}

static void note_label(struct gt_m *m, struct gt_g_row *g, const char *label, uint64_t ts)
{
    if (!*label || g->label == label)
        return;
    g->label = label;
    if (gt_all.writes)
        gt_put(m, GT_EV_GO_LABEL, ts, GT_ARGS(gt_writing_string(label)));
}

static void go_start(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = m_on(h->on);
    g->source.state = GT_G_RUNNING;
    g->source.seq++;
    g->woke_ns = ns;
    be_there(h, ns);
    if (completes_step(g, m, ns)) {
        int step = g->next_step;
        g->next_step = NOTHING;
        if (step == CALL_ENDS) {
            g->call_ns = ns;
            gt_do_call_end(m, g, ts_of(ns));
        }
        note_label(m, g, h->text, ts_of(ns));
        return;
    }
    finish_step(g);
    if (g->unmade && gt_all.writes && !v1())
        g->next_ns = ns;
    make(m, g);
    gt_do_start(m, g, ts_of(ns));
    note_label(m, g, h->text, ts_of(ns));
}

/* A wait that was in vain goes on to be for the same: see threads.c. */
static void note_wait(struct gt_g_row *g, const char *reason, uint64_t ns)
{
    bool again = g->lock_ns < g->woke_ns;
    if (again ? g->woke_ns < ns : g->lock_ns + LOG_NS < ns || !strstr(reason, "sync"))
        g->lock.key = NULL;
}

static void go_leave(const struct gt_happening *h, enum gt_g_state state, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    g->source.state = state;
    bool preempted = state == GT_G_RUNNABLE && strcmp(h->text, "preempted") == 0;
    if (preempted && ours() && ((v1() && !h->stack) || g->call_ns == ns)) {
        begin_step(g, STOPS, h, ns);
        return;
    }
    note_wait(g, h->text, ns);
    g->state = state;
    g->reason = h->text;
    g->stack = h->stack;
    if (state == GT_G_SYSCALL && m->p)
        m->p->source.seq = h->arg[0];
    gt_do_leave(m, g, ts_of(ns));
}

static void go_call_end(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    struct gt_g_row *g = v1() && h->g ? gt_g_of(h->g) : m->g;
    if (!g)
        return;
    if (h->type == GT_EV_GO_SYSCALL_END) {
        g->source.state = GT_G_RUNNING;
        g->call_ns = ns;
        gt_do_call_end(m, g, ts_of(ns));
        return;
    }
    g->source.state = GT_G_RUNNABLE;
    g->source.seq += h->g != 0;
    /* With the P that it had: the thread goes on, as soon as it is said so. */
    if (v1() && m->g == g && m->p && m->p->state == GT_P_SYSCALL) {
        begin_step(g, CALL_ENDS, h, ns);
        return;
    }
    uint64_t ts = gt_put(m, GT_EV_GO_SYSCALL_END_BLOCKED, ts_of(ns), NULL);
    g->last = (struct gt_cause){ts, m};
    g->state = GT_G_RUNNABLE;
    g->m = m;
    m->g = NULL;
}

/* A wait that ends by itself is ended by its own thread. */
static void go_unblock(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *g = gt_g_of(h->g);
    struct gt_m *m = m_on(h->on);
    g->source.state = GT_G_RUNNABLE;
    g->source.seq++;
    finish_step(g);
    if (g->state == GT_G_RUNNABLE) /* what it waits for was told of the P that it has left */
        return;
    bool own = (v1() && !m->g) || (gt_wants(g) && !gt_wants_thread(m));
    if (own && g->m)
        m = g->m;
    if (g->unmade)
        make(m, g);
    uint64_t ts = gt_after(m, &g->last, ts_of(ns));
    uint64_t stack = gt_all.writes ? gt_writing_stack(h->stack) : 0;
    if (gt_wants(g))
        ts = gt_put(m, GT_EV_GO_UNBLOCK, ts, GT_ARGS(g->id, gt_next_seq(m, &g->seq), stack));
    g->last = (struct gt_cause){ts, m};
    g->state = GT_G_RUNNABLE;
    g->reason = "";
    g->stack = NULL;
}

static void go_destroy(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    g->source.state = g->state = GT_G_NONE;
    gt_put(m, h->type, ts_of(ns), NULL);
    g->m = NULL;
    m->g = NULL;
    if (h->type == GT_EV_GO_DESTROY_SYSCALL && m->p) { /* and its P goes with it */
        m->p->state = GT_P_IDLE;
        m->p->m = NULL;
        m->p = NULL;
    }
}

/* Go's alone: a thread of C calls Go; coroutines. */
static void go_create_syscall(const struct gt_happening *h, uint64_t ts)
{
    struct gt_g_row *g = gt_g_of(h->arg[0]);
    struct gt_m *m = m_on(h->on);
    g->state = g->source.state = GT_G_SYSCALL;
    g->source.seq = g->seq = 0;
    g->m = m;
    m->g = g;
    ts = gt_put(m, h->type, ts, GT_ARGS(g->id));
    g->last = (struct gt_cause){ts, m};
}

static void go_switch(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    struct gt_g_row *g = m->g, *next = gt_g_of(h->arg[0]);
    enum gt_g_state state = h->type == GT_EV_GO_SWITCH ? GT_G_WAITING : GT_G_NONE;
    ts = gt_put(m, h->type, gt_after(m, &next->last, ts),
                GT_ARGS(next->id, gt_next_seq(m, &next->seq)));
    if (g) {
        g->state = g->source.state = state;
        g->last = (struct gt_cause){ts, m};
    }
    next->source.seq = h->arg[1];
    next->state = next->source.state = GT_G_RUNNING;
    next->m = m;
    next->last = (struct gt_cause){ts, m};
    m->g = next;
}

/* What the program says ------------------------------------------------------------------------ */

static void task_begin(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_task *task = gt_need(calloc(1, sizeof *task));
    *task = (struct gt_task){NULL, h->task, h->parent, h->text, h->stack, true};
    *gt_all.last_task = task;
    gt_all.last_task = &task->next;
    *(uint64_t *)gt_need(gt_memo_at(&gt_all.task, h->task + 1)) = (uintptr_t)task;
    gt_do_task(m, task, ts);
}

static void task_end(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_task *task = (void *)(uintptr_t)gt_memo_find(&gt_all.task, h->task + 1);
    if (task)
        task->open = false;
    if (gt_all.writes)
        gt_put(m, GT_EV_USER_TASK_END, ts, GT_ARGS(h->task, gt_writing_stack(h->stack)));
}

static void region_begin(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_region *region = gt_need(calloc(1, sizeof *region));
    *region = (struct gt_region){
        .outer = m->g->regions, .task = h->task, .name = h->text, .stack = h->stack};
    m->g->regions = region;
    gt_do_region(m, region, ts);
}

static void region_end(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_region *region = m->g->regions;
    uint64_t text = region ? region->text : 0;
    if (gt_all.writes)
        gt_put(m, GT_EV_USER_REGION_END, ts,
               GT_ARGS(h->task, gt_writing_text_again(text, h->text), gt_writing_stack(h->stack)));
    if (region)
        m->g->regions = region->outer;
    free(region);
}

static void user_log(struct gt_m *m, const struct gt_happening *h, uint64_t ns)
{
    struct gt_log_line log = {h->task, h->text, h->more, h->stack};
    if (!h->task && (strcmp(h->text, "held by") == 0 || strcmp(h->text, "waits for") == 0)) {
        m->g->lock = log;
        m->g->lock_ns = ns;
    }
    gt_do_log(m, &log, ts_of(ns));
}

/* Of the goroutine that runs there. */
static void says(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    switch (h->type) {
    case GT_EV_USER_TASK_BEGIN: task_begin(m, h, ts_of(ns)); break;
    case GT_EV_USER_TASK_END: task_end(m, h, ts_of(ns)); break;
    case GT_EV_USER_REGION_BEGIN: region_begin(m, h, ts_of(ns)); break;
    case GT_EV_USER_REGION_END: region_end(m, h, ts_of(ns)); break;
    case GT_EV_USER_LOG: user_log(m, h, ns); break;
    default: note_label(m, g, h->text, ts_of(ns)); break;
    }
}

static void procs_change(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    if (gt_all.procs == h->arg[0])
        return;
    gt_all.procs = h->arg[0];
    gt_all.procs_due = true;
    if (gt_writes_of(m) && m->g && m->g->state == GT_G_RUNNING)
        gt_do_procs(m, ts);
}

static void heap(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    if (m->p)
        gt_put(m, h->type, ts, GT_ARGS(h->bytes));
}

/* Collections --------------------------------------------------------------------------------- */

static void gc(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    bool begins = h->type == GT_EV_GC_BEGIN;
    uint64_t stack = begins && gt_all.writes ? gt_writing_stack(h->stack) : 0;
    if (gt_all.writes && (begins || gt_all.collects_told))
        gt_put(m, h->type, ts, GT_ARGS(gt_next_seq(m, &gt_all.gc_seq), stack));
    gt_all.collects = begins && !ours(); /* ours are told whole, in one generation */
    gt_all.collects_told = begins && gt_all.writes;
}

static void stop_the_world(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    static struct gt_m *stopped; /* by whom, of which readers know */
    if (!gt_all.writes) {
        stopped = NULL;
        return;
    }
    if (h->type == GT_EV_STW_BEGIN)
        gt_put(stopped = m, h->type, ts,
               GT_ARGS(gt_writing_string(h->text), gt_writing_stack(h->stack)));
    else if (stopped)
        gt_put(m, h->type, ts, NULL);
}

/* What a P sweeps, and a goroutine helps to mark: Go's alone. */
static void ranges(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = m_on(h->on);
    bool sweeps = h->type == GT_EV_GC_SWEEP_BEGIN || h->type == GT_EV_GC_SWEEP_END;
    bool begins = h->type == GT_EV_GC_SWEEP_BEGIN || h->type == GT_EV_GC_MARK_ASSIST_BEGIN;
    uint64_t stack = gt_all.writes ? gt_writing_stack(h->stack) : 0;
    if (sweeps ? !m->p : !m->g)
        return;
    bool *open = sweeps ? &m->p->sweeps : &m->g->assists;
    if (begins || *open)
        gt_put(m, h->type, ts, begins ? GT_ARGS(stack) : h->arg);
    *open = begins;
}

static void active(const struct gt_happening *h)
{
    switch (h->type) {
    case GT_EV_GC_ACTIVE: gt_all.collects = true; break;
    case GT_EV_GC_SWEEP_ACTIVE: gt_p_of(h->arg[0])->sweeps = true; break;
    default: gt_g_of(h->arg[0])->assists = true; break;
    }
}

/* All of it ------------------------------------------------------------------------------------ */

static void happen(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *on = m_on(h->on)->g;
    if (on && on->next_step != NOTHING && !(h->type == GT_EV_GO_START && h->g == on->id))
        finish_step(on);
    switch (h->type) {
    case GT_EV_PROC_STATUS: proc_status(h); break;
    case GT_EV_PROC_START: proc_start(h, ns); break;
    case GT_EV_PROC_STOP: proc_stop(h, ns); break;
    case GT_EV_PROC_STEAL: proc_steal(h, ts_of(ns)); break;
    case GT_EV_PROCS_CHANGE: procs_change(h, ts_of(ns)); break;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: go_status(h, ts_of(ns)); break;
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_BLOCKED: go_create(h, ns); break;
    case GT_EV_GO_CREATE_SYSCALL: go_create_syscall(h, ts_of(ns)); break;
    case GT_EV_GO_START: go_start(h, ns); break;
    case GT_EV_GO_STOP: go_leave(h, GT_G_RUNNABLE, ns); break;
    case GT_EV_GO_BLOCK: go_leave(h, GT_G_WAITING, ns); break;
    case GT_EV_GO_SYSCALL_BEGIN: go_leave(h, GT_G_SYSCALL, ns); break;
    case GT_EV_GO_SYSCALL_END:
    case GT_EV_GO_SYSCALL_END_BLOCKED: go_call_end(h, ns); break;
    case GT_EV_GO_UNBLOCK: go_unblock(h, ns); break;
    case GT_EV_GO_DESTROY:
    case GT_EV_GO_DESTROY_SYSCALL: go_destroy(h, ns); break;
    case GT_EV_GO_SWITCH:
    case GT_EV_GO_SWITCH_DESTROY: go_switch(h, ts_of(ns)); break;
    case GT_EV_GO_LABEL:
    case GT_EV_USER_TASK_BEGIN:
    case GT_EV_USER_TASK_END:
    case GT_EV_USER_REGION_BEGIN:
    case GT_EV_USER_REGION_END:
    case GT_EV_USER_LOG: says(h, ns); break;
    case GT_EV_HEAP_ALLOC:
    case GT_EV_HEAP_GOAL: heap(h, ts_of(ns)); break;
    case GT_EV_GC_BEGIN:
    case GT_EV_GC_END: gc(h, ts_of(ns)); break;
    case GT_EV_STW_BEGIN:
    case GT_EV_STW_END: stop_the_world(h, ts_of(ns)); break;
    case GT_EV_GC_SWEEP_BEGIN:
    case GT_EV_GC_SWEEP_END:
    case GT_EV_GC_MARK_ASSIST_BEGIN:
    case GT_EV_GC_MARK_ASSIST_END: ranges(h, ts_of(ns)); break;
    case GT_EV_GC_ACTIVE:
    case GT_EV_GC_SWEEP_ACTIVE:
    case GT_EV_GC_MARK_ASSIST_ACTIVE: active(h); break;
    default: break;
    }
}

static void set_host(void)
{
    const struct gt_trace *t = gt_all.wanted.trace;
    gt_writing_set_host(gt_all.procs, t->wall_s, t->wall_ns, t->mono_ns);
}

static void next_generation(uint64_t ns)
{
    finish_all();
    set_host();
    part.generations++;
    gt_writing_next(ts_of(ns));
    gt_begin_generation(ts_of(ns));
    part.generation_ns = ns;
}

static void begin(uint64_t from)
{
    part.begun = true;
    part.generation_ns = from;
    finish_all();
    gt_all.writes = !part.over;
    if (from)
        gt_begin_part(ts_of(from));
}

static void over(void)
{
    if (part.begun)
        finish_all();
    else
        begin(gt_all.wanted.from);
    part.over = true;
    part.last_generation = part.generation;
    gt_all.writes = false;
}

/* Whether ours is over where the source's is, or, where that has none, has become large. */
static bool is_generation_over(uint64_t ns)
{
    const struct gt_trace *t = gt_all.wanted.trace;
    bool next = t->generations != part.generation;
    part.generation = t->generations;
    if (!t->format->v1)
        return next;
    bool whole = ns > part.ns; /* steps are */
    part.ns = ns;
    return whole &&
           (ns - part.generation_ns >= GENERATION_NS || gt_writing_size() >= GENERATION_BYTES);
}

static void note_modules(void)
{
    const struct gt_trace *t = gt_all.wanted.trace;
    for (size_t i = 0; i < t->n_own; i++)
        gt_writing_module(t->own[i]);
}

/*
 * What somebody does who has done nothing else in the generation may be told when that ends: this
 * is what it has done in our part, too.
 */
static void late_status(const struct gt_happening *h)
{
    bool created = h->type == GT_EV_GO_CREATE || h->type == GT_EV_GO_CREATE_BLOCKED ||
                   h->type == GT_EV_GO_CREATE_SYSCALL;
    if (created) /* a status that comes later is no first one */
        gt_g_of(h->arg[0])->source.state = GT_G_RUNNABLE;
    bool of_g = h->type == GT_EV_GO_STATUS || h->type == GT_EV_GO_STATUS_STACK;
    bool ends = part.generations || part.generation != part.last_generation || v1();
    if (ends || !(of_g || h->type == GT_EV_PROC_STATUS))
        return;
    gt_all.writes = true;
    happen(h, gt_all.wanted.to);
    gt_all.writes = false;
}

static void tell(void *arg, const struct gt_happening *h, uint64_t ns)
{
    (void)arg;
    bool first = part.generation != gt_all.wanted.trace->generations || !part.generation;
    bool next = is_generation_over(ns);
    if (first)
        note_modules();
    if (!part.over && ns >= gt_all.wanted.to)
        over();
    if (part.over) {
        late_status(h);
        return;
    }
    if (!part.begun && ns >= gt_all.wanted.from)
        begin(gt_all.wanted.from);
    else if (part.begun && next)
        next_generation(ns);
    happen(h, ours() ? ns : h->own_ns); /* Go's readers find the order of Go's Ps by themselves */
}

/* Order: what Go's own reader goes by. v1 has numbers for goroutines only, and not always. */
static bool possible(void *arg, const struct gt_happening *h)
{
    (void)arg;
    const struct gt_g_row *g;
    const struct gt_p_row *p;
    const struct gt_m *m;
    switch (h->type) {
    case GT_EV_GO_START:
        g = gt_g_known(h->g);
        return g && g->source.state == GT_G_RUNNABLE && (!h->seq || h->seq == g->source.seq + 1);
    case GT_EV_GO_UNBLOCK:
        g = gt_g_known(h->g);
        return g && g->source.state == GT_G_WAITING && (!h->seq || h->seq == g->source.seq + 1);
    case GT_EV_GO_SWITCH:
    case GT_EV_GO_SWITCH_DESTROY:
        g = gt_g_known(h->arg[0]);
        return g && g->source.state == GT_G_WAITING && h->arg[1] == g->source.seq + 1;
    case GT_EV_PROC_START:
    case GT_EV_PROC_STEAL:
        p = v1() ? NULL : gt_p_of(h->arg[0]);
        if (p && h->type == GT_EV_PROC_START && m_on(h->on)->p)
            return false; /* in a call, and it is not told yet who took the other one */
        return !p || (p->source.known && h->arg[1] == p->source.seq + 1 &&
                      p->source.busy == (h->type == GT_EV_PROC_STEAL));
    case GT_EV_GO_SYSCALL_END_BLOCKED:
        m = m_on(h->on);
        return v1() || !m->p || m->p->state != GT_P_SYSCALL;
    default: return true;
    }
}

static void gap(void *arg)
{
    (void)arg;
    gt_state_forget();
}

/* Beside events -------------------------------------------------------------------------------- */

static bool is_within(uint64_t ns)
{
    return ns >= gt_all.wanted.from && ns < gt_all.wanted.to;
}

static void sample(void *arg, const struct gt_cpu_sample *s, uint64_t ns)
{
    (void)arg;
    struct gt_cpu_sample whole = *s;
    const struct gt_g_row *g = gt_g_known(s->g);
    if (!is_within(ns) || (g && !gt_wants(g)) || (!g && gt_all.wanted.gs))
        return;
    if (s->thread == GT_NO_THREAD && g && g->m)
        whole.thread = g->m->id;
    gt_writing_sample(&whole, ts_of(ns));
}

void gt_rewriting_sample(const struct gt_cpu_sample *s, uint64_t ns)
{
    sample(NULL, s, ns);
}

/* Before a thread's first row, and after it is told of: whether it ran when the part began. */
static void begin_account(struct gt_g_row *g)
{
    unsigned runs = g->began == RAN ? GT_KNOWN_RUNS : 0;
    if (g->began != NOT_THERE)
        gt_writing_account(&(struct gt_account_row){
            .g = g->id, .at = ts_of(gt_all.wanted.from) + 1, .used.known = GT_KNOWN_CPU | runs});
    g->began = NOT_THERE;
}

/* A part of what was used, in equal measure. */
static void account(void *arg, const struct gt_account_row *row, uint64_t ns, uint64_t length)
{
    (void)arg;
    struct gt_account_row cut = *row;
    uint64_t begin = ns > length ? ns - length : 0, end = ns;
    struct gt_g_row *g = gt_g_known(row->g);
    if (row->g && (g ? !gt_wants(g) : gt_all.wanted.gs != NULL))
        return;
    if (!row->g && begin >= gt_all.wanted.to)
        begin = end = gt_all.wanted.to; /* it says that all is known until then */
    begin = begin > gt_all.wanted.from ? begin : gt_all.wanted.from;
    end = end < gt_all.wanted.to ? end : gt_all.wanted.to;
    if (begin > end || (begin == end && length && row->g) || end < gt_all.wanted.from)
        return;
    if (g)
        begin_account(g);
    cut.at = ts_of(end);
    cut.length = end - begin;
    for (int i = 0; i < GT_USED_NUMBERS && cut.length < length; i++)
        cut.used.of[i] =
            (uint64_t)((double)row->used.of[i] * ((double)cut.length / (double)length) + 0.5);
    if (row->used.of[GT_USED_VOLUNTARY] && !cut.used.of[GT_USED_VOLUNTARY])
        cut.used.of[GT_USED_VOLUNTARY] = 1; /* none would mean that it did not sleep */
    gt_writing_account(&cut);
}

const struct gt_audience gt_rewriting_audience = {
    .possible = possible, .tell = tell, .sample = sample, .account = account, .gap = gap};

void gt_rewriting_begin(const struct gt_rewriting *r)
{
    gt_all = (struct gt_everybody){.wanted = *r};
    gt_all.last_p = &gt_all.first_p;
    gt_all.last_g = &gt_all.first_g;
    gt_all.last_task = &gt_all.first_task;
}

void gt_rewriting_end(uint64_t end, bool whole)
{
    if (!part.over)
        over();
    gt_all.writes = true;
    set_host();
    if (!gt_format->v1) {
        gt_writing_next(ts_of(end));
        gt_begin_generation(ts_of(end));
    }
    gt_writing_end(ts_of(end), whole);
}
