/* See validity_rules.h. */
#include "validity_rules.h"

#include "need.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WRONG(...) (gt_fault_note(r->fault, __VA_ARGS__), GT_WRONG)

/* Known goroutines, Ps and threads ------------------------------------------------------------ */

static void *row_of(struct gt_memo *memo, uint64_t id, size_t size)
{
    uint64_t *slot = gt_need(gt_memo_at(memo, id));
    if (!*slot) {
        uint64_t *row = gt_need(calloc(1, size));
        *row = id;
        *slot = (uintptr_t)row;
    }
    return (void *)(uintptr_t)*slot;
}

static struct gt_rule_g *g_of(struct gt_rules *r, uint64_t id)
{
    return row_of(&r->g, id, sizeof(struct gt_rule_g));
}

static struct gt_rule_p *p_of(struct gt_rules *r, uint64_t id)
{
    return row_of(&r->p, id, sizeof(struct gt_rule_p));
}

struct gt_rule_m *gt_rule_m(struct gt_rules *r, uint64_t id)
{
    return row_of(&r->m, id, sizeof(struct gt_rule_m));
}

static void free_rows(struct gt_memo *memo)
{
    for (size_t i = 0; i < memo->capacity; i++)
        free((void *)(uintptr_t)memo->slots[i].value);
    gt_memo_free(memo);
}

void gt_rules_free(struct gt_rules *r)
{
    for (size_t i = 0; i < r->g.capacity; i++) {
        struct gt_rule_g *g = (void *)(uintptr_t)r->g.slots[i].value;
        free(g ? g->regions : NULL);
        free(g ? g->stops : NULL);
    }
    free_rows(&r->g);
    free_rows(&r->p);
    free_rows(&r->m);
    gt_memo_free(&r->tasks);
    free(r->strings.dense);
    free(r->stacks.dense);
    gt_memo_free(&r->strings.others);
    gt_memo_free(&r->stacks.others);
}

/* Sequence numbers ---------------------------------------------------------------------------- */

static bool succeeds(const struct gt_rules *r, uint64_t seq, const struct gt_count *at)
{
    return at->gen == r->gen && seq == at->seq + 1;
}

static void count(const struct gt_rules *r, uint64_t seq, struct gt_count *at)
{
    *at = (struct gt_count){r->gen, seq};
}

static bool is_first(const struct gt_rules *r)
{
    return r->gen == r->first_gen;
}

/* What an event needs ------------------------------------------------------------------------- */

static bool needs_p(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (m->id == GT_NO_THREAD)
        return gt_fault_note(r->fault, "it is of no thread");
    return m->p || gt_fault_note(r->fault, "its thread has no P");
}

static bool needs_g(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (m->id == GT_NO_THREAD)
        return gt_fault_note(r->fault, "it is of no thread");
    if (!m->g)
        return gt_fault_note(r->fault, "its thread runs no goroutine");
    return m->g->exists ||
           gt_fault_note(r->fault, "goroutine %" PRIu64 " does not exist", m->g->id);
}

static const char *state_name(uint64_t state)
{
    static const char *const names[] = {"nothing", "runnable", "running", "in a call", "waiting"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

static bool needs_state(struct gt_rules *r, const struct gt_rule_m *m, enum gt_g_state state)
{
    return needs_p(r, m) && needs_g(r, m) &&
           (m->g->status == state ||
            gt_fault_note(r->fault, "goroutine %" PRIu64 " is %s, not %s", m->g->id,
                          state_name(m->g->status), state_name(state)));
}

/* An event that a program reports itself: needs a thread, a P and a goroutine in any state. */
static enum gt_verdict say(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (!needs_p(r, m))
        return GT_WRONG;
    return m->g ? GT_DONE : WRONG("its thread runs no goroutine");
}

/* Ps ------------------------------------------------------------------------------------------ */

static bool has_thread(const struct gt_rules *r, const struct gt_rule_p *p)
{
    for (size_t i = 0; i < r->m.capacity; i++) {
        const struct gt_rule_m *m = (void *)(uintptr_t)r->m.slots[i].value;
        if (m && m->known && m->p == p)
            return true;
    }
    return false;
}

static enum gt_verdict proc_status(struct gt_rules *r, struct gt_rule_m *m)
{
    uint64_t status = m->arg[1];
    struct gt_rule_p *p = p_of(r, m->arg[0]);
    bool taken = status == GT_P_ABANDONED && p->exists && p->status == GT_P_SYSCALL;
    if (status > GT_P_ABANDONED)
        return WRONG("P %" PRIu64 " has the status %" PRIu64 ", which there is not", p->id, status);
    if (p->exists && p->status != status && !taken)
        return WRONG("P %" PRIu64 " has the status %" PRIu64 ", but had %" PRIu64, p->id, status,
                     p->status);
    if (taken && !has_thread(r, p))
        return WRONG("P %" PRIu64 " is taken from a call, and no thread has it", p->id);
    if (!p->exists)
        p->status = status;
    p->exists = true;
    count(r, 0, &p->at);
    if ((status == GT_P_RUNNING || status == GT_P_SYSCALL) && m->id != GT_NO_THREAD)
        m->p = p;
    return GT_DONE;
}

static enum gt_verdict proc_start(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_p *p = p_of(r, m->arg[0]);
    if (!p->exists || p->status != GT_P_IDLE || !succeeds(r, m->arg[1], &p->at) || m->p)
        return GT_NOT_YET;
    if (m->id == GT_NO_THREAD)
        return WRONG("it is of no thread");
    p->status = GT_P_RUNNING;
    count(r, m->arg[1], &p->at);
    m->p = p;
    return GT_DONE;
}

static enum gt_verdict proc_stop(struct gt_rules *r, struct gt_rule_m *m)
{
    if (!needs_p(r, m))
        return GT_WRONG;
    if (m->p->status != GT_P_RUNNING && m->p->status != GT_P_SYSCALL)
        return WRONG("P %" PRIu64 " stops and does not run", m->p->id);
    m->p->status = GT_P_IDLE;
    m->p = NULL;
    return GT_DONE;
}

static enum gt_verdict proc_steal(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_p *p = p_of(r, m->arg[0]);
    bool abandoned = p->status == GT_P_ABANDONED;
    if (!p->exists || (p->status != GT_P_SYSCALL && !abandoned) || !succeeds(r, m->arg[1], &p->at))
        return GT_NOT_YET;
    if (m->id == GT_NO_THREAD)
        return WRONG("it is of no thread");
    p->status = GT_P_IDLE;
    count(r, m->arg[1], &p->at);
    if (abandoned)
        return GT_DONE;
    struct gt_rule_m *from = m->arg[2] == m->id ? m : gt_rule_m(r, m->arg[2]);
    if (from != m && !from->known)
        return WRONG("P %" PRIu64 " is taken from thread %" PRIu64 ", which does not exist", p->id,
                     from->id);
    if (from->p != p)
        return WRONG("P %" PRIu64 " is taken from thread %" PRIu64 ", which does not have it",
                     p->id, from->id);
    from->p = NULL;
    return GT_DONE;
}

/* Goroutines ---------------------------------------------------------------------------------- */

static void create(struct gt_rules *r, struct gt_rule_g *g, enum gt_g_state state)
{
    g->exists = true;
    g->assists = false;
    g->status = state;
    g->n_regions = g->n_stops = 0;
    count(r, 0, &g->at);
}

/* Binds a goroutine that is in a call to its thread: this one, or one without other events. */
static enum gt_verdict bind_call(struct gt_rules *r, struct gt_rule_m *m, struct gt_rule_g *g)
{
    uint64_t thread = m->arg[1];
    if (thread == GT_NO_THREAD)
        return WRONG("goroutine %" PRIu64 " is in a call, on no thread", g->id);
    struct gt_rule_m *on = thread == m->id ? m : gt_rule_m(r, thread);
    bool bound = on == m ? !is_first(r) : on->known;
    if (bound && on->g != g)
        return WRONG("goroutine %" PRIu64 " is in a call on thread %" PRIu64
                     ", which does not run it",
                     g->id, thread);
    on->known = true;
    on->g = g;
    return GT_DONE;
}

static enum gt_verdict go_status(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    uint64_t status = m->arg[2];
    if (status > GT_G_WAITING)
        return WRONG("goroutine %" PRIu64 " has the status %" PRIu64 ", which there is not", g->id,
                     status);
    if (!g->exists && !is_first(r))
        return WRONG("goroutine %" PRIu64 " has a status and was never created", g->id);
    if (g->exists && g->status != status)
        return WRONG("goroutine %" PRIu64 " is said to be %s, but is %s", g->id, state_name(status),
                     state_name(g->status));
    if (!g->exists)
        create(r, g, (enum gt_g_state)status);
    count(r, 0, &g->at);
    if (status == GT_G_RUNNING && m->id != GT_NO_THREAD)
        m->g = g;
    return status == GT_G_SYSCALL ? bind_call(r, m, g) : GT_DONE;
}

static enum gt_verdict go_create(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    if (!needs_p(r, m))
        return GT_WRONG;
    if (m->g && m->g->exists && m->g->status != GT_G_RUNNING)
        return WRONG("goroutine %" PRIu64 " is %s, and creates another one", m->g->id,
                     state_name(m->g->status));
    if (g->exists)
        return WRONG("goroutine %" PRIu64 " is created, and exists already", g->id);
    create(r, g, m->type == GT_EV_GO_CREATE_BLOCKED ? GT_G_WAITING : GT_G_RUNNABLE);
    return GT_DONE;
}

static enum gt_verdict go_create_syscall(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    if (m->id == GT_NO_THREAD)
        return WRONG("it is of no thread");
    if (m->g)
        return WRONG("its thread runs goroutine %" PRIu64, m->g->id);
    if (g->exists)
        return WRONG("goroutine %" PRIu64 " is created, and exists already", g->id);
    create(r, g, GT_G_SYSCALL);
    m->g = g;
    return GT_DONE;
}

/* The goroutine leaves its thread. */
static enum gt_verdict go_leave(struct gt_rules *r, struct gt_rule_m *m, enum gt_g_state state)
{
    if (!needs_state(r, m, GT_G_RUNNING))
        return GT_WRONG;
    m->g->status = state;
    m->g->exists = state != GT_G_NONE;
    m->g = NULL;
    return GT_DONE;
}

static enum gt_verdict go_start(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    if (!g->exists || g->status != GT_G_RUNNABLE || !succeeds(r, m->arg[1], &g->at))
        return GT_NOT_YET;
    if (!needs_p(r, m))
        return GT_WRONG;
    if (m->g)
        return WRONG("goroutine %" PRIu64 " starts, and its thread runs goroutine %" PRIu64, g->id,
                     m->g->id);
    g->status = GT_G_RUNNING;
    count(r, m->arg[1], &g->at);
    m->g = g;
    return GT_DONE;
}

static enum gt_verdict go_unblock(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    if (!g->exists || g->status != GT_G_WAITING || !succeeds(r, m->arg[1], &g->at))
        return GT_NOT_YET;
    g->status = GT_G_RUNNABLE;
    count(r, m->arg[1], &g->at);
    return GT_DONE;
}

static enum gt_verdict go_switch(struct gt_rules *r, struct gt_rule_m *m)
{
    struct gt_rule_g *to = g_of(r, m->arg[0]);
    bool ends = m->type == GT_EV_GO_SWITCH_DESTROY;
    if (!needs_state(r, m, GT_G_RUNNING))
        return GT_WRONG;
    if (!to->exists || to->status != GT_G_WAITING || !succeeds(r, m->arg[1], &to->at))
        return GT_NOT_YET;
    m->g->status = ends ? GT_G_NONE : GT_G_WAITING;
    m->g->exists = !ends;
    to->status = GT_G_RUNNING;
    count(r, m->arg[1], &to->at);
    m->g = to;
    return GT_DONE;
}

/* Calls --------------------------------------------------------------------------------------- */

static enum gt_verdict call_begin(struct gt_rules *r, struct gt_rule_m *m)
{
    if (!needs_state(r, m, GT_G_RUNNING))
        return GT_WRONG;
    if (!succeeds(r, m->arg[0], &m->p->at))
        return WRONG("P %" PRIu64 " has the sequence number %" PRIu64 " after %" PRIu64, m->p->id,
                     m->arg[0], m->p->at.seq);
    m->g->status = GT_G_SYSCALL;
    m->p->status = GT_P_SYSCALL;
    count(r, m->arg[0], &m->p->at);
    return GT_DONE;
}

static enum gt_verdict call_end(struct gt_rules *r, struct gt_rule_m *m)
{
    if (!needs_state(r, m, GT_G_SYSCALL))
        return GT_WRONG;
    if (m->p->status != GT_P_SYSCALL)
        return WRONG("P %" PRIu64 " is in no call", m->p->id);
    m->g->status = GT_G_RUNNING;
    m->p->status = GT_P_RUNNING;
    return GT_DONE;
}

static enum gt_verdict call_end_blocked(struct gt_rules *r, struct gt_rule_m *m)
{
    if (m->p && m->p->status == GT_P_SYSCALL)
        return GT_NOT_YET;
    if (!needs_g(r, m))
        return GT_WRONG;
    if (m->g->status != GT_G_SYSCALL)
        return WRONG("goroutine %" PRIu64 " is %s, not in a call", m->g->id,
                     state_name(m->g->status));
    m->g->status = GT_G_RUNNABLE;
    m->g = NULL;
    return GT_DONE;
}

static enum gt_verdict go_destroy_syscall(struct gt_rules *r, struct gt_rule_m *m)
{
    if (!needs_g(r, m))
        return GT_WRONG;
    if (m->g->status != GT_G_SYSCALL)
        return WRONG("goroutine %" PRIu64 " is %s, not in a call", m->g->id,
                     state_name(m->g->status));
    if (m->p && m->p->status != GT_P_SYSCALL)
        return WRONG("P %" PRIu64 " is in no call", m->p->id);
    if (m->p)
        m->p->status = GT_P_ABANDONED;
    m->g->exists = false;
    m->g = NULL;
    m->p = NULL;
    return GT_DONE;
}

/* Events that the program reports itself ------------------------------------------------------ */

static enum gt_verdict task_begin(struct gt_rules *r, const struct gt_rule_m *m)
{
    enum { OPEN = 1 };
    uint64_t *task = gt_need(gt_memo_at(&r->tasks, m->arg[0]));
    if (*task == OPEN)
        return WRONG("task %" PRIu64 " begins, and has begun already", m->arg[0]);
    *task = OPEN;
    return say(r, m);
}

static enum gt_verdict task_end(struct gt_rules *r, const struct gt_rule_m *m)
{
    enum { ENDED = 2 };
    *(uint64_t *)gt_need(gt_memo_at(&r->tasks, m->arg[0])) = ENDED;
    return say(r, m);
}

/* The text of a string that is in the table. */
static struct gt_bytes text_of(const struct gt_rules *r, uint64_t id)
{
    struct gt_bytes text = {0};
    uint64_t place = id ? gt_ids_find(&r->strings, id) : 0;
    if (!place)
        return text;
    text = (struct gt_bytes){r->base + place - 1, r->end, false};
    return gt_get_part(&text, gt_get_varint(&text));
}

static bool same_text(const struct gt_bytes *a, const struct gt_bytes *b)
{
    size_t n = gt_bytes_left(a);
    return n == gt_bytes_left(b) && (!n || memcmp(a->p, b->p, n) == 0);
}

static enum gt_verdict region(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (say(r, m) != GT_DONE || !needs_g(r, m))
        return GT_WRONG;
    struct gt_rule_g *g = m->g;
    struct gt_rule_region its = {m->arg[0], text_of(r, m->arg[1])};
    if (m->type == GT_EV_USER_REGION_BEGIN) {
        *GT_ADD(g->regions, g->n_regions) = its;
        return GT_DONE;
    }
    if (!g->n_regions)
        return GT_DONE; /* it may have begun before the trace */
    const struct gt_rule_region *inner = &g->regions[g->n_regions - 1];
    if (inner->task != its.task || !same_text(&inner->name, &its.name))
        return WRONG("goroutine %" PRIu64 " ends a region that is not its innermost one", g->id);
    g->n_regions--;
    return GT_DONE;
}

/* Collections --------------------------------------------------------------------------------- */

static enum gt_verdict gc_active(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (is_first(r) && r->gc != GT_GC_UNKNOWN)
        return WRONG("a collection is under way from the beginning, after others were told of");
    if (!is_first(r) && m->arg[0] != r->gc_seq + 1)
        return GT_NOT_YET;
    if (!is_first(r) && r->gc != GT_GC_ON)
        return WRONG("a collection is said to be under way, and none is");
    enum gt_verdict v = is_first(r) ? GT_DONE : say(r, m);
    r->gc_seq = m->arg[0];
    r->gc = GT_GC_ON;
    return v;
}

static enum gt_verdict gc_begin(struct gt_rules *r, const struct gt_rule_m *m)
{
    bool first = r->gc == GT_GC_UNKNOWN;
    if (!first && m->arg[0] != r->gc_seq + 1)
        return GT_NOT_YET;
    if (r->gc == GT_GC_ON)
        return WRONG("a collection begins while one is under way");
    r->gc_seq = m->arg[0];
    r->gc = GT_GC_ON;
    return first ? GT_DONE : say(r, m);
}

static enum gt_verdict gc_end(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (m->arg[0] != r->gc_seq + 1)
        return GT_NOT_YET;
    if (r->gc != GT_GC_ON)
        return WRONG("a collection ends, and none is under way");
    r->gc_seq = m->arg[0];
    r->gc = GT_GC_OFF;
    return say(r, m);
}

/*
 * A range is said to be open. In the first generation that opens it; later it must be open
 * already.
 */
static enum gt_verdict active(struct gt_rules *r, bool *open, const char *what)
{
    if (is_first(r) == *open)
        return WRONG(*open ? "%s is open already" : "%s is said to be open, and is not", what);
    *open = true;
    return GT_DONE;
}

static enum gt_verdict range(struct gt_rules *r, bool *open, bool begins, const char *what)
{
    if (*open == begins)
        return WRONG(begins ? "%s begins, and is open already" : "%s ends, and is not open", what);
    *open = begins;
    return GT_DONE;
}

static enum gt_verdict sweep(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (!needs_p(r, m))
        return GT_WRONG;
    return range(r, &m->p->sweeps, m->type == GT_EV_GC_SWEEP_BEGIN, "sweeping");
}

static enum gt_verdict sweep_active(struct gt_rules *r, const struct gt_rule_m *m)
{
    struct gt_rule_p *p = p_of(r, m->arg[0]);
    if (!p->exists)
        return WRONG("P %" PRIu64 " sweeps, and was never told of", p->id);
    return active(r, &p->sweeps, "sweeping");
}

static enum gt_verdict assist(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (say(r, m) != GT_DONE || !needs_g(r, m))
        return GT_WRONG;
    return range(r, &m->g->assists, m->type == GT_EV_GC_MARK_ASSIST_BEGIN, "an assist");
}

static enum gt_verdict assist_active(struct gt_rules *r, const struct gt_rule_m *m)
{
    struct gt_rule_g *g = g_of(r, m->arg[0]);
    if (!g->exists)
        return WRONG("goroutine %" PRIu64 " assists, and was never told of", g->id);
    return active(r, &g->assists, "an assist");
}

/* A goroutine may have begun stops of the world of several kinds. */
static enum gt_verdict stop_the_world(struct gt_rules *r, const struct gt_rule_m *m)
{
    if (say(r, m) != GT_DONE || !needs_g(r, m))
        return GT_WRONG;
    struct gt_rule_g *g = m->g;
    if (m->type == GT_EV_STW_END) {
        if (!g->n_stops)
            return WRONG("a stop of the world ends, and none has begun");
        g->stops[0] = g->stops[--g->n_stops];
        return GT_DONE;
    }
    for (size_t i = 0; i < g->n_stops; i++) {
        if (g->stops[i] == m->arg[0])
            return WRONG("a stop of the world begins, and has begun already");
    }
    *GT_ADD(g->stops, g->n_stops) = m->arg[0];
    return GT_DONE;
}

/* What events refer to ------------------------------------------------------------------------ */

/* Which arguments are ids of stacks or strings: one bit for each argument. */
static const struct {
    uint8_t stacks, strings;
} refers[GT_EVENTS_END] = {
    [GT_EV_PROCS_CHANGE] = {.stacks = 1 << 1},
    [GT_EV_GO_CREATE] = {.stacks = 1 << 1 | 1 << 2},
    [GT_EV_GO_CREATE_BLOCKED] = {.stacks = 1 << 1 | 1 << 2},
    [GT_EV_GO_STOP] = {.strings = 1 << 0, .stacks = 1 << 1},
    [GT_EV_GO_BLOCK] = {.strings = 1 << 0, .stacks = 1 << 1},
    [GT_EV_GO_UNBLOCK] = {.stacks = 1 << 2},
    [GT_EV_GO_SYSCALL_BEGIN] = {.stacks = 1 << 1},
    [GT_EV_GO_STATUS_STACK] = {.stacks = 1 << 3},
    [GT_EV_STW_BEGIN] = {.strings = 1 << 0, .stacks = 1 << 1},
    [GT_EV_GC_BEGIN] = {.stacks = 1 << 1},
    [GT_EV_GC_SWEEP_BEGIN] = {.stacks = 1 << 0},
    [GT_EV_GC_MARK_ASSIST_BEGIN] = {.stacks = 1 << 0},
    [GT_EV_GO_LABEL] = {.strings = 1 << 0},
    [GT_EV_USER_TASK_BEGIN] = {.strings = 1 << 2, .stacks = 1 << 3},
    [GT_EV_USER_TASK_END] = {.stacks = 1 << 1},
    [GT_EV_USER_REGION_BEGIN] = {.strings = 1 << 1, .stacks = 1 << 2},
    [GT_EV_USER_REGION_END] = {.strings = 1 << 1, .stacks = 1 << 2},
    [GT_EV_USER_LOG] = {.strings = 1 << 1 | 1 << 2, .stacks = 1 << 3},
};

static bool has_all(struct gt_rules *r, const struct gt_rule_m *m)
{
    unsigned stacks = refers[m->type].stacks, strings = refers[m->type].strings;
    for (unsigned i = 0; i < GT_EVENT_ARGS_MAX && (stacks | strings) >> i; i++) {
        uint64_t id = m->arg[i];
        if (id && stacks >> i & 1 && !gt_ids_find(&r->stacks, id))
            return gt_fault_note(r->fault, "stack %" PRIu64 " is not in its generation", id);
        if (id && strings >> i & 1 && !gt_ids_find(&r->strings, id))
            return gt_fault_note(r->fault, "string %" PRIu64 " is not in its generation", id);
    }
    return true;
}

static enum gt_verdict advance(struct gt_rules *r, struct gt_rule_m *m)
{
    switch (m->type) {
    case GT_EV_PROC_STATUS: return proc_status(r, m);
    case GT_EV_PROC_START: return proc_start(r, m);
    case GT_EV_PROC_STOP: return proc_stop(r, m);
    case GT_EV_PROC_STEAL: return proc_steal(r, m);
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: return go_status(r, m);
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_BLOCKED: return go_create(r, m);
    case GT_EV_GO_CREATE_SYSCALL: return go_create_syscall(r, m);
    case GT_EV_GO_START: return go_start(r, m);
    case GT_EV_GO_DESTROY: return go_leave(r, m, GT_G_NONE);
    case GT_EV_GO_STOP: return go_leave(r, m, GT_G_RUNNABLE);
    case GT_EV_GO_BLOCK: return go_leave(r, m, GT_G_WAITING);
    case GT_EV_GO_UNBLOCK: return go_unblock(r, m);
    case GT_EV_GO_SWITCH:
    case GT_EV_GO_SWITCH_DESTROY: return go_switch(r, m);
    case GT_EV_GO_SYSCALL_BEGIN: return call_begin(r, m);
    case GT_EV_GO_SYSCALL_END: return call_end(r, m);
    case GT_EV_GO_SYSCALL_END_BLOCKED: return call_end_blocked(r, m);
    case GT_EV_GO_DESTROY_SYSCALL: return go_destroy_syscall(r, m);
    case GT_EV_USER_TASK_BEGIN: return task_begin(r, m);
    case GT_EV_USER_TASK_END: return task_end(r, m);
    case GT_EV_USER_REGION_BEGIN:
    case GT_EV_USER_REGION_END: return region(r, m);
    case GT_EV_GC_ACTIVE: return gc_active(r, m);
    case GT_EV_GC_BEGIN: return gc_begin(r, m);
    case GT_EV_GC_END: return gc_end(r, m);
    case GT_EV_GC_SWEEP_ACTIVE: return sweep_active(r, m);
    case GT_EV_GC_SWEEP_BEGIN:
    case GT_EV_GC_SWEEP_END: return sweep(r, m);
    case GT_EV_GC_MARK_ASSIST_ACTIVE: return assist_active(r, m);
    case GT_EV_GC_MARK_ASSIST_BEGIN:
    case GT_EV_GC_MARK_ASSIST_END: return assist(r, m);
    case GT_EV_STW_BEGIN:
    case GT_EV_STW_END: return stop_the_world(r, m);
    case GT_EV_HEAP_ALLOC:
    case GT_EV_HEAP_GOAL: return needs_p(r, m) ? GT_DONE : GT_WRONG;
    case GT_EV_PROCS_CHANGE:
    case GT_EV_GO_LABEL:
    case GT_EV_USER_LOG: return say(r, m);
    default: /* an experimental event */
        return m->id == GT_NO_THREAD ? WRONG("it is of no thread") : GT_DONE;
    }
}

enum gt_verdict gt_rule_advance(struct gt_rules *r, struct gt_rule_m *m)
{
    m->known |= m->id != GT_NO_THREAD;
    r->first_gen = r->first_gen ? r->first_gen : r->gen;
    enum gt_verdict verdict = advance(r, m);
    if (verdict == GT_NOT_YET)
        return verdict;
    bool has = m->type >= GT_EVENTS_END || has_all(r, m);
    return has ? verdict : GT_WRONG;
}
