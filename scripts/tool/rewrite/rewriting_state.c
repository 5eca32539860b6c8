/* See rewriting_state.h. */
#include "rewriting_state.h"

#include "numbers.h"

#include "encoder/read/need.h"
#include "encoder/file/v1/tables.h"

#include <stdlib.h>

struct gt_everybody *gt_all;
uint64_t gt_gc_seq;

/* Rows by id ---------------------------------------------------------------------------------- */

void gt_rewriting_use(struct gt_everybody *all)
{
    gt_all = all;
    gt_writing_from(&all->source);
}

struct gt_m *gt_m_of(uint64_t thread)
{
    uint64_t *slot = gt_need(gt_memo_at(&gt_all->m, thread + 1));
    if (!*slot) {
        struct gt_m *m = gt_need(calloc(1, sizeof *m));
        m->id = thread;
        m->number = gt_number_of_thread(thread);
        *slot = (uintptr_t)m;
    }
    return (struct gt_m *)(uintptr_t)*slot;
}

struct gt_p_row *gt_p_of(uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&gt_all->p, id + 1));
    if (!*slot) {
        struct gt_p_row *p = gt_need(calloc(1, sizeof *p));
        p->id = id;
        p->number = gt_number_of_p(id);
        p->state = GT_P_IDLE;
        *gt_all->last_p = p;
        gt_all->last_p = &p->next;
        *slot = (uintptr_t)p;
    }
    return (struct gt_p_row *)(uintptr_t)*slot;
}

struct gt_g_row *gt_g_known(uint64_t id)
{
    return (struct gt_g_row *)(uintptr_t)gt_memo_find(&gt_all->g, id + 1);
}

struct gt_g_row *gt_g_of(uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&gt_all->g, id + 1));
    if (!*slot) {
        struct gt_g_row *g = gt_need(calloc(1, sizeof *g));
        g->id = id;
        g->number = gt_number_of_g(id);
        g->first = id == 1;
        g->reason = g->label = "";
        g->call_ns = UINT64_MAX;
        *slot = (uintptr_t)g;
    }
    struct gt_g_row *g = (struct gt_g_row *)(uintptr_t)*slot;
    if (!g->listed) {
        g->listed = true;
        *gt_all->last_g = g;
        gt_all->last_g = &g->next;
    }
    return g;
}

void gt_state_trim(void)
{
    struct gt_g_row **link = &gt_all->first_g, *g;
    while ((g = *link)) {
        if (g->state == GT_G_NONE && g->source.state == GT_G_NONE && !g->unmade) {
            g->listed = false;
            *link = g->next;
            g->next = NULL;
        } else {
            link = &g->next;
        }
    }
    gt_all->last_g = link;
}

bool gt_wants_thread(const struct gt_m *m)
{
    return !gt_all->wanted.threads || gt_memo_find(gt_all->wanted.threads, m->id + 1);
}

bool gt_wants(const struct gt_g_row *g)
{
    return !gt_all->wanted.gs || gt_memo_find(gt_all->wanted.gs, g->id);
}

void gt_state_forget(void)
{
    for (struct gt_p_row *p = gt_all->first_p; p; p = p->next) {
        if (p->m)
            p->m->p = NULL;
        p->m = NULL;
        p->state = GT_P_IDLE;
        p->source.known = p->stops = false;
    }
    for (struct gt_g_row *g = gt_all->first_g; g; g = g->next) {
        if (g->m)
            g->m->g = NULL;
        g->state = g->source.state = GT_G_NONE;
        g->stack = NULL;
        g->next_step = NOTHING;
        g->regions = NULL;
        g->lock.key = NULL;
    }
}

/* Events -------------------------------------------------------------------------------------- */

bool gt_writes_of(const struct gt_m *m)
{
    return gt_all->writes && gt_wants_thread(m);
}

uint64_t gt_next_seq(const struct gt_m *m, uint64_t *seq)
{
    *seq += gt_writes_of(m);
    return *seq;
}

/* Whether the event is of an unwanted goroutine on m: the kernel may reuse m's thread number. */
static bool is_of_unwanted(const struct gt_m *m, enum gt_event_type type)
{
    bool of_p = type == GT_EV_PROC_START || type == GT_EV_PROC_STOP || type == GT_EV_PROC_STATUS ||
                type == GT_EV_PROC_STEAL;
    return !of_p && m->g && !gt_wants(m->g);
}

uint64_t gt_put(struct gt_m *m, enum gt_event_type type, uint64_t ts, const uint64_t *args)
{
    if (!gt_writes_of(m) || is_of_unwanted(m, type))
        return ts;
    if (!m->lane)
        m->lane = gt_writing_lane(m->number);
    return gt_writing_event(m->lane, type, ts, args);
}

uint64_t gt_ts_of(uint64_t ns)
{
    return gt_all->wanted.later + ns + 1; /* as time 0 means none */
}

uint64_t gt_after(const struct gt_m *m, const struct gt_cause *cause, uint64_t ts)
{
    return gt_all->writes && cause->m != m && ts <= cause->ts ? cause->ts + 1 : ts;
}

/* Stacks and texts are put into the tables only for events that are written. */

static uint64_t stack_id(const struct gt_callers *stack)
{
    return gt_all->writes ? gt_writing_stack(stack) : 0;
}

static uint64_t string_id(const char *text)
{
    return gt_all->writes ? gt_writing_string(text) : 0;
}

static uint64_t text_id(const char *text)
{
    return gt_all->writes ? gt_writing_text(text) : 0;
}

static void caused(struct gt_g_row *g, const struct gt_m *m, uint64_t ts)
{
    g->last = (struct gt_cause){ts, m};
}

/* Ps ------------------------------------------------------------------------------------------ */

void gt_do_p_status(struct gt_m *m, struct gt_p_row *p, uint64_t ts)
{
    gt_put(m, GT_EV_PROC_STATUS, ts, GT_ARGS(p->number, p->state));
    p->told = gt_writes_of(m);
    p->seq = 0;
}

void gt_do_proc_start(struct gt_m *m, struct gt_p_row *p, uint64_t ts)
{
    ts = gt_after(m, &p->left, ts);
    p->state = GT_P_IDLE;
    if (!p->told)
        gt_do_p_status(m, p, ts);
    gt_put(m, GT_EV_PROC_START, ts, GT_ARGS(p->number, gt_next_seq(m, &p->seq)));
    p->state = GT_P_RUNNING;
    p->m = m;
    m->p = p;
}

/* Stops m's goroutine, whose own event for that has not come yet, or is lost. */
static void preempt(struct gt_m *m, uint64_t ts)
{
    struct gt_g_row *g = m->g;
    g->next_step = NOTHING;
    g->state = GT_G_RUNNABLE;
    g->reason = "preempted";
    g->stack = NULL;
    gt_do_leave(m, g, ts);
}

void gt_do_proc_stop(struct gt_m *m, uint64_t ts)
{
    struct gt_p_row *p = m->p;
    if (!p)
        return;
    if (m->g && m->g->state == GT_G_RUNNING)
        preempt(m, ts);
    p->left = (struct gt_cause){gt_put(m, GT_EV_PROC_STOP, ts, NULL), m};
    p->state = GT_P_IDLE;
    p->stops = false;
    p->m = NULL;
    m->p = NULL;
}

/* Writes an event of the goroutine, if the goroutine is wanted, too. */
static uint64_t put_of(const struct gt_g_row *g, struct gt_m *m, enum gt_event_type type,
                       uint64_t ts, const uint64_t *args)
{
    return gt_wants(g) ? gt_put(m, type, ts, args) : ts;
}

/* Goroutines ---------------------------------------------------------------------------------- */

static uint64_t routine_id(const struct gt_g_row *g)
{
    return gt_format->v1 && !g->its && g->first ? GT_V1_STACK_MAIN : stack_id(g->its);
}

static void put_create(struct gt_m *m, struct gt_g_row *g, enum gt_event_type type,
                       const struct gt_callers *stack, uint64_t ts)
{
    caused(g, m, put_of(g, m, type, ts, GT_ARGS(g->number, routine_id(g), stack_id(stack))));
    g->seq = 0;
    g->unmade = g->unborn = false;
}

/* Whether a fork made m's first goroutine (joining.c): g is that one from here on, and runnable. */
static bool was_made_by_fork(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    struct gt_g_row *made = gt_all->forked;
    if (!made || made->m != m)
        return false;
    gt_all->forked = NULL;
    g->number = made->number;
    g->named = made->named;
    g->seq = made->seq;
    g->unmade = false;
    g->last = made->last;
    gt_do_unblock(m, g, NULL, ts);
    made->state = GT_G_NONE;
    return true;
}

void gt_do_create(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts)
{
    if (was_made_by_fork(m, g, ts))
        return;
    put_create(m, g, GT_EV_GO_CREATE, stack, ts);
    g->state = GT_G_RUNNABLE;
}

void gt_do_create_waiting(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack,
                          uint64_t ts)
{
    bool sayable = gt_format->minor >= 23;
    if (sayable)
        put_create(m, g, GT_EV_GO_CREATE_BLOCKED, stack, ts);
    g->unborn = !sayable && gt_all->writes;
    g->state = GT_G_WAITING;
}

void gt_do_unblock(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts)
{
    ts = gt_after(m, &g->last, ts);
    if (gt_wants(g))
        ts = gt_put(m, GT_EV_GO_UNBLOCK, ts,
                    GT_ARGS(g->number, gt_next_seq(m, &g->seq), stack_id(stack)));
    caused(g, m, ts);
    g->state = GT_G_RUNNABLE;
    g->reason = "";
    g->stack = NULL;
}

void gt_do_start(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    ts = gt_after(m, &g->last, ts);
    caused(g, m, put_of(g, m, GT_EV_GO_START, ts, GT_ARGS(g->number, gt_next_seq(m, &g->seq))));
    g->state = GT_G_RUNNING;
    g->stack = NULL;
    g->m = m;
    m->last_g = m->g = g;
    if (gt_all->procs_due && gt_writes_of(m))
        gt_do_procs(m, ts);
    if (gt_all->wanted.process && !g->named && gt_writes_of(m))
        gt_do_label(m, g, ts);
}

/* v1 carries the label in the next start event, so g stops and starts. */
void gt_do_label(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    g->named = true;
    gt_put(m, GT_EV_GO_LABEL, ts, GT_ARGS(gt_writing_string(gt_name_of(g))));
    if (!gt_format->v1)
        return;
    preempt(m, ts);
    gt_do_start(m, g, ts);
}

void gt_do_leave(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    uint64_t stack = stack_id(g->stack);
    if (g->state == GT_G_SYSCALL) {
        caused(g, m,
               put_of(g, m, GT_EV_GO_SYSCALL_BEGIN, ts,
                      GT_ARGS(m->p ? gt_next_seq(m, &m->p->seq) : 0, stack)));
        if (m->p)
            m->p->state = GT_P_SYSCALL;
        return;
    }
    enum gt_event_type type = g->state == GT_G_WAITING ? GT_EV_GO_BLOCK : GT_EV_GO_STOP;
    caused(g, m, put_of(g, m, type, ts, GT_ARGS(string_id(g->reason), stack)));
    m->g = NULL;
}

/* Writes what the format has after a call, as a recording does: see enum gt_after_call. */
static void after_call(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    uint64_t stack = stack_id(g->stack);
    if (gt_format->after_call == GT_AFTER_CALL_STATUS) {
        put_of(g, m, GT_EV_GO_STATUS_STACK, ts, GT_ARGS(g->number, m->number, GT_G_RUNNING, stack));
        g->seq = 0;
    } else if (gt_format->after_call == GT_AFTER_CALL_STOP_START) {
        put_of(g, m, GT_EV_GO_STOP, ts, GT_ARGS(string_id("preempted"), stack));
        put_of(g, m, GT_EV_GO_START, ts, GT_ARGS(g->number, gt_next_seq(m, &g->seq)));
    }
}

void gt_do_call_end(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    ts = put_of(g, m, GT_EV_GO_SYSCALL_END, ts, NULL);
    caused(g, m, ts);
    g->state = GT_G_RUNNING;
    if (m->p)
        m->p->state = GT_P_RUNNING;
    if (gt_all->writes && gt_all->wanted.trace->ours)
        after_call(m, g, ts);
    g->stack = NULL;
}

void gt_do_call_end_blocked(struct gt_m *m, struct gt_g_row *g, uint64_t ts)
{
    caused(g, m, gt_put(m, GT_EV_GO_SYSCALL_END_BLOCKED, ts, NULL));
    g->state = GT_G_RUNNABLE;
    g->m = m;
    m->g = m->g == g ? NULL : m->g;
}

void gt_do_status(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts)
{
    bool on_thread = g->state == GT_G_RUNNING || g->state == GT_G_SYSCALL;
    uint64_t thread = on_thread && g->m ? g->m->number : GT_NO_THREAD;
    if (gt_format->v1 && !on_thread && !gt_all->wanted.trace->ours)
        m = gt_m_of(GT_WRITING_FIRST); /* or m's goroutine would look like the maker of g */
    bool sayable = gt_format->minor >= 23 || gt_format->v1;
    uint64_t where = !stack && gt_format->v1 ? routine_id(g) : sayable ? stack_id(stack) : 0;
    if (where)
        ts = put_of(g, m, GT_EV_GO_STATUS_STACK, ts, GT_ARGS(g->number, thread, g->state, where));
    else
        ts = put_of(g, m, GT_EV_GO_STATUS, ts, GT_ARGS(g->number, thread, g->state));
    g->seq = 0;
    caused(g, m, ts);
}

/* What the program says ------------------------------------------------------------------------ */

void gt_do_procs(struct gt_m *m, uint64_t ts)
{
    gt_put(m, GT_EV_PROCS_CHANGE, ts, GT_ARGS(gt_all->procs));
    gt_all->procs_due = false;
}

void gt_do_task(struct gt_m *m, const struct gt_rewritten_task *task, uint64_t ts)
{
    gt_put(m, GT_EV_USER_TASK_BEGIN, ts,
           GT_ARGS(task->id, task->parent, text_id(task->name), stack_id(task->stack)));
}

void gt_do_region(struct gt_m *m, struct gt_user_region *region, uint64_t ts)
{
    region->text = text_id(region->name);
    region->told = true;
    gt_put(m, GT_EV_USER_REGION_BEGIN, ts,
           GT_ARGS(region->task, region->text, stack_id(region->stack)));
}

/* All keys of logs about locks, but those of holds, are among the few interned strings. */
static uint64_t key_id(const char *key)
{
    bool ours = gt_locks_is_of_wait(key) || gt_locks_is_waker(key);
    return ours ? string_id(key) : text_id(key);
}

void gt_do_log(struct gt_m *m, const struct gt_log_line *log, uint64_t ts)
{
    gt_put(m, GT_EV_USER_LOG, ts,
           GT_ARGS(log->task, key_id(log->key), text_id(log->value), stack_id(log->stack)));
}
