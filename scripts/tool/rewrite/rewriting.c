/* See rewriting.h: when a part and its generations begin and end. */
#include "rewriting.h"

#include "aligning.h"
#include "holding.h"
#include "joining.h"
#include "steps.h"

#include "encoder/read/account_rows.h"
#include "encoder/read/need.h"
#include "encoder/thread/procs.h"

#include <stdlib.h>

enum { GENERATION_NS = 1000000000, GENERATION_BYTES = 64 << 20 };

static void happen(const struct gt_happening *h, uint64_t ns)
{
    struct gt_g_row *on = gt_m_on(h->on)->g;
    if (on && on->next_step != NOTHING && !(h->type == GT_EV_GO_START && h->g == on->id))
        gt_step_finish(on);
    if (gt_all->wanted.holdings && on && on->state == GT_G_RUNNING)
        gt_holdings_tell(gt_all->wanted.holdings, h, on->id, ns);
    switch (h->type) {
    case GT_EV_PROC_STATUS: gt_tell_proc_status(h); break;
    case GT_EV_PROC_START: gt_tell_proc_start(h, ns); break;
    case GT_EV_PROC_STOP: gt_tell_proc_stop(h, ns); break;
    case GT_EV_PROC_STEAL: gt_tell_proc_steal(h, gt_ts_of(ns)); break;
    case GT_EV_PROCS_CHANGE: gt_tell_procs(h, gt_ts_of(ns)); break;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: gt_tell_status(h, gt_ts_of(ns)); break;
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_BLOCKED: gt_tell_create(h, ns); break;
    case GT_EV_GO_CREATE_SYSCALL: gt_tell_create_syscall(h, gt_ts_of(ns)); break;
    case GT_EV_GO_START: gt_tell_start(h, ns); break;
    case GT_EV_GO_STOP: gt_tell_leave(h, GT_G_RUNNABLE, ns); break;
    case GT_EV_GO_BLOCK: gt_tell_leave(h, GT_G_WAITING, ns); break;
    case GT_EV_GO_SYSCALL_BEGIN: gt_tell_leave(h, GT_G_SYSCALL, ns); break;
    case GT_EV_GO_SYSCALL_END:
    case GT_EV_GO_SYSCALL_END_BLOCKED: gt_tell_call_end(h, ns); break;
    case GT_EV_GO_UNBLOCK: gt_tell_unblock(h, ns); break;
    case GT_EV_GO_DESTROY:
    case GT_EV_GO_DESTROY_SYSCALL: gt_tell_destroy(h, ns); break;
    case GT_EV_GO_LABEL:
    case GT_EV_USER_TASK_BEGIN:
    case GT_EV_USER_TASK_END:
    case GT_EV_USER_REGION_BEGIN:
    case GT_EV_USER_REGION_END:
    case GT_EV_USER_LOG: gt_tell_says(h, ns); break;
    case GT_EV_HEAP_ALLOC:
    case GT_EV_HEAP_GOAL: gt_tell_heap(h, gt_ts_of(ns)); break;
    case GT_EV_GC_BEGIN:
    case GT_EV_GC_END: gt_tell_gc(h, gt_ts_of(ns)); break;
    case GT_EV_STW_BEGIN:
    case GT_EV_STW_END: gt_tell_stop_the_world(h, gt_ts_of(ns)); break;
    case GT_EV_GC_SWEEP_BEGIN:
    case GT_EV_GC_SWEEP_END:
    case GT_EV_GC_MARK_ASSIST_BEGIN:
    case GT_EV_GC_MARK_ASSIST_END: gt_tell_ranges(h, gt_ts_of(ns)); break;
    case GT_EV_GC_ACTIVE:
    case GT_EV_GC_SWEEP_ACTIVE:
    case GT_EV_GC_MARK_ASSIST_ACTIVE: gt_tell_active(h); break;
    default: break;
    }
}

static void set_host(void)
{
    const struct gt_trace *t = gt_all->wanted.trace;
    gt_writing_set_host(gt_all->procs, t->wall_s, t->wall_ns, t->mono_ns);
}

static void next_generation(uint64_t ns)
{
    gt_steps_finish();
    set_host();
    gt_all->part.generations++;
    gt_writing_next(gt_ts_of(ns));
    gt_begin_generation(gt_ts_of(ns));
    gt_all->part.generation_ns = ns;
}

static void begin(uint64_t from)
{
    gt_all->part.begun = true;
    gt_all->part.generation_ns = from;
    gt_steps_finish();
    gt_all->writes = !gt_all->part.over;
    if (from)
        gt_begin_part(gt_ts_of(from));
}

static void over(void)
{
    if (gt_all->part.begun)
        gt_steps_finish();
    else
        begin(gt_all->wanted.from);
    gt_all->part.over = true;
    gt_all->part.last_generation = gt_all->part.generation;
    gt_all->writes = false;
}

/* Whether the generation ends: with the source's; if v1, which has none, by time or size. */
static bool is_generation_over(uint64_t ns)
{
    const struct gt_trace *t = gt_all->wanted.trace;
    bool next = t->generations != gt_all->part.generation;
    gt_all->part.generation = t->generations;
    if (!t->format->v1)
        return next;
    bool whole = ns > gt_all->part.ns; /* no v1 step is half done: a step has one time */
    gt_all->part.ns = ns;
    return whole && (ns - gt_all->part.generation_ns >= GENERATION_NS ||
                     gt_writing_size() >= GENERATION_BYTES);
}

static void note_modules(void)
{
    const struct gt_trace *t = gt_all->wanted.trace;
    for (size_t i = 0; i < t->n_own; i++)
        gt_writing_module(t->own[i]);
}

/* A v1 trace gives the clock's frequency before its events. */
static void note_origin(void)
{
    const struct gt_trace *t = gt_all->wanted.trace;
    double scale = t->format->v1 ? t->ns_per_unit : gt_trace_last_scale(t);
    struct gt_origin its = gt_align_alone(t, scale);
    gt_writing_set_origin(its.ticks ? &its : NULL);
    gt_writing_set_setup(t->setup);
}

/*
 * Writes a status that comes after the part. The status of a goroutine or P without other events in
 * a generation may stand at the generation's end, and is true of the part, too.
 */
static void late_status(const struct gt_happening *h)
{
    bool created = h->type == GT_EV_GO_CREATE || h->type == GT_EV_GO_CREATE_BLOCKED ||
                   h->type == GT_EV_GO_CREATE_SYSCALL;
    if (created) /* its later statuses do not say what it did in the part */
        gt_g_of(h->arg[0])->source.state = GT_G_RUNNABLE;
    bool of_g = h->type == GT_EV_GO_STATUS || h->type == GT_EV_GO_STATUS_STACK;
    bool ends = gt_all->part.generations ||
                gt_all->part.generation != gt_all->part.last_generation || gt_reads_our_v1();
    if (ends || !(of_g || h->type == GT_EV_PROC_STATUS))
        return;
    gt_all->writes = true;
    happen(h, gt_all->wanted.to);
    gt_all->writes = false;
}

static void tell(void *arg, const struct gt_happening *h, uint64_t ns)
{
    (void)arg;
    bool first = !gt_all->part.known;
    bool fresh = first || gt_all->part.generation != gt_all->wanted.trace->generations;
    bool next = is_generation_over(ns);
    gt_all->part.known = true;
    if (fresh)
        note_modules();
    if (first && !gt_all->wanted.together)
        note_origin();
    if (!gt_all->part.over && ns >= gt_all->wanted.to)
        over();
    if (gt_all->part.over) {
        late_status(h);
        return;
    }
    if (!gt_all->part.begun && ns >= gt_all->wanted.from)
        begin(gt_all->wanted.from);
    else if (gt_all->part.begun && next && !gt_all->wanted.together)
        next_generation(ns);
    /* Readers of v2 find the order of events of Go's Ps themselves. */
    bool own = !gt_reads_ours() && !gt_all->wanted.trace->format->v1 && !gt_format->v1;
    happen(h, own ? h->own_ns : ns);
}

/* Whether h is the goroutine's next event, and the goroutine is in that state. */
static bool is_next(const struct gt_happening *h, enum gt_g_state state)
{
    const struct gt_g_row *g = gt_g_known(h->g);
    return g && g->source.state == state &&
           (!h->seq || (h->seq == g->source.seq + 1 &&
                        g->source.generation == gt_all->wanted.trace->generations));
}

/*
 * Whether h can be next: Go's own reader orders events by the same rules. v1 has sequence numbers
 * for goroutines only, and not always.
 */
static bool possible(void *arg, const struct gt_happening *h)
{
    (void)arg;
    const struct gt_g_row *g;
    const struct gt_p_row *p;
    const struct gt_m *m;
    switch (h->type) {
    case GT_EV_GO_START: return is_next(h, GT_G_RUNNABLE);
    case GT_EV_GO_UNBLOCK: return is_next(h, GT_G_WAITING);
    case GT_EV_PROC_START:
    case GT_EV_PROC_STEAL:
        p = gt_reads_our_v1() ? NULL : gt_p_of(h->arg[0]);
        if (p && h->type == GT_EV_PROC_START && gt_m_on(h->on)->p)
            return false; /* in a call; the event of the thread that took its P is still to come */
        if (p && gt_all->wanted.trace->format->v1)
            return !p->m;
        return !p || (p->source.known && h->arg[1] == p->source.seq + 1 &&
                      p->source.generation == gt_all->wanted.trace->generations &&
                      p->source.busy == (h->type == GT_EV_PROC_STEAL));
    case GT_EV_GO_SYSCALL_END_BLOCKED:
        if (gt_reads_our_v1())
            return h->on->thread != GT_NO_THREAD || is_next(h, GT_G_SYSCALL);
        g = h->g ? gt_g_known(h->g) : NULL;
        m = g && g->m ? g->m : gt_m_on(h->on);
        if (h->g && !is_next(h, GT_G_SYSCALL))
            return false;
        return !m->p || m->p->state != GT_P_SYSCALL;
    default: return true;
    }
}

static void gap(void *arg)
{
    (void)arg;
    gt_state_forget();
}

/* Samples and accounts ------------------------------------------------------------------------- */

static bool is_within(uint64_t ns)
{
    return ns >= gt_all->wanted.from && ns < gt_all->wanted.to;
}

static void sample(void *arg, const struct gt_cpu_sample *s, uint64_t ns)
{
    (void)arg;
    struct gt_cpu_sample whole = *s;
    const struct gt_g_row *g = gt_g_known(s->g);
    if (!is_within(ns) || (g && !gt_wants(g)) || (!g && gt_all->wanted.gs))
        return;
    if (s->thread == GT_NO_THREAD && g && g->m)
        whole.thread = g->m->id;
    if (whole.thread != GT_NO_THREAD)
        whole.thread = gt_m_of(whole.thread)->number;
    whole.g = s->g ? gt_g_of(s->g)->number : 0;
    if (gt_all->wanted.together && s->p < GT_PROCS_MAX) /* a single trace keeps its P numbers */
        whole.p = gt_p_of(s->p)->number;
    gt_writing_sample(&whole, gt_ts_of(ns));
}

/* Before the first account of a thread that is known: whether it ran when the part began. */
static void begin_account(struct gt_g_row *g)
{
    unsigned runs = g->began == RAN ? GT_KNOWN_RUNS : 0;
    if (g->began != NOT_THERE)
        gt_writing_account(&(struct gt_account_row){.g = g->number,
                                                    .at = gt_ts_of(gt_all->wanted.from) + 1,
                                                    .used.known = GT_KNOWN_CPU | runs});
    g->began = NOT_THERE;
}

static void account(void *arg, const struct gt_account_row *row, uint64_t ns, uint64_t length)
{
    (void)arg;
    struct gt_account_row cut = *row;
    uint64_t begin = ns > length ? ns - length : 0, end = ns;
    struct gt_g_row *g = gt_g_known(row->g);
    if (row->g && (g ? !gt_wants(g) : gt_all->wanted.gs != NULL))
        return;
    if (!row->g && begin >= gt_all->wanted.to)
        begin = end = gt_all->wanted.to; /* the row says: all accounts are known until then */
    begin = begin > gt_all->wanted.from ? begin : gt_all->wanted.from;
    end = end < gt_all->wanted.to ? end : gt_all->wanted.to;
    if (begin > end || (begin == end && length && row->g) || end < gt_all->wanted.from)
        return;
    if (g)
        begin_account(g);
    cut.g = row->g ? gt_g_of(row->g)->number : 0;
    if (gt_all->wanted.together) /* Ps have other numbers than CPUs */
        cut.used.known &= ~GT_KNOWN_CPUS;
    cut.at = gt_ts_of(end);
    cut.length = end - begin;
    gt_usage_cut(&cut.used, cut.length, length);
    gt_halts_cut(&cut.halts, cut.length, length);
    if (gt_all->wanted.no_halts)
        cut.used.known &= ~GT_KNOWN_HALTS;
    gt_writing_account(&cut);
}

const struct gt_audience gt_rewriting_audience = {.possible = possible,
                                                  .tell = tell,
                                                  .samples_in_time = true,
                                                  .sample = sample,
                                                  .account = account,
                                                  .gap = gap};

struct gt_everybody *gt_rewriting_begin(const struct gt_rewriting *r)
{
    gt_rewriting_use(gt_need(calloc(1, sizeof *gt_all)));
    gt_all->wanted = *r;
    gt_all->last_p = &gt_all->first_p;
    gt_all->last_g = &gt_all->first_g;
    gt_all->last_task = &gt_all->first_task;
    return gt_all;
}

/* When merging -------------------------------------------------------------------------------- */

void gt_rewriting_pause(void)
{
    gt_steps_finish();
}

void gt_rewriting_go_on(uint64_t ns)
{
    gt_begin_generation(gt_ts_of(ns - gt_all->wanted.later));
}

void gt_rewriting_leave(uint64_t ns, bool whole)
{
    gt_join_leave(ns, whole);
    gt_writing_forget(&gt_all->source);
    gt_contents_free(&gt_all->texts);
}

void gt_rewriting_end(uint64_t end, bool whole)
{
    if (!gt_all->part.over)
        over();
    gt_all->writes = true;
    set_host();
    if (!gt_format->v1) {
        gt_writing_next(gt_ts_of(end));
        gt_begin_generation(gt_ts_of(end));
    }
    gt_writing_end(gt_ts_of(end), whole);
}
