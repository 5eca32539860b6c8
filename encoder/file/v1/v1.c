/* See v1.h. */
#include "v1.h"

#include "encoder/base/sparse.h"
#include "encoder/cpu/merge.h"
#include "encoder/cpu/sched.h"
#include "encoder/cpu/watch.h"
#include "pages.h"
#include "tables.h"

#include "encoder/cpu/samples.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/texts.h"
#include "encoder/thread/writer.h"

#include <string.h>
#include <unistd.h>

static struct {
    bool begun; /* the file has events */
    uint64_t collections;
    uint64_t cpus; /* 0: as many as this host has */
    bool started[GT_MERGE_NO_P + 1];
    bool of_go, collects, stands; /* a collection, or a pause, has begun */
    struct {                      /* has begun, may be over at once; g NULL: none */
        const struct gt_merge_g *g;
        uint32_t p;
        uint64_t ts;
    } call;
} v1 GT_SPARSE;

/*
 * Returns the event that starts g on P p, and sets its arguments. The event has no number if g's
 * last event was on p too.
 */
static enum gt_v1_type start_on(struct gt_merge_g *g, uint32_t p, uint64_t *args)
{
    bool local = g->v1_p == p && gt_v1_has(gt_format, GT_V1_GO_START_LOCAL);
    g->v1_seq++;
    g->v1_p = p;
    args[0] = g->id;
    args[1] = g->v1_seq;
    args[2] = g->v1_label;
    if (g->v1_named && gt_v1_has(gt_format, GT_V1_GO_START_LABEL))
        return GT_V1_GO_START_LABEL;
    return local ? GT_V1_GO_START_LOCAL : GT_V1_GO_START;
}

void gt_v1_open(void)
{
    if (v1.begun) /* else it is zero: do not touch its pages */
        memset(v1.started, 0, sizeof v1.started);
    v1.begun = v1.of_go = v1.collects = v1.stands = false;
    v1.collections = 0;
    v1.call.g = NULL;
    gt_merge_reset(&gt_merge_for_v1);
    gt_v1_pages_open(start_on);
    gt_v1_tables_open();
}

/* A file that goes on ------------------------------------------------------------------------ */

void gt_v1_go_on(void)
{
    gt_v1_open();
    v1.begun = true;
    gt_v1_pages_go_on();
}

/* The goroutine that the event names, not the one that runs on its P; 0: there is none. */
static uint64_t named_in(const struct gt_v1_stands *e)
{
    switch (e->type) {
    case GT_V1_GO_CREATE:
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL:
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: return e->arg[0];
    default: return 0;
    }
}

/*
 * Counts an event of goroutine g. Every event but its creation has a number. A page has the events
 * of one P after those of another. So g's last event, and its P, are not known, and need not be.
 */
static void stands_of(struct gt_merge_g *g, const struct gt_v1_stands *e)
{
    g->known = true;
    g->v1_seq += e->type != GT_V1_GO_CREATE;
    g->v1_p = GT_MERGE_NO_P;
    if (e->type == GT_V1_GO_START_LABEL) {
        g->v1_named = true;
        g->v1_label = (uint32_t)e->arg[2];
    }
}

/*
 * Notes which goroutine runs on the event's P. A GoPreempt without a stack is the end of a page:
 * the goroutine runs on.
 */
static void stands_on(const struct gt_v1_stands *e, struct gt_merge_g *g)
{
    switch (e->type) {
    case GT_V1_PROC_START:
    case GT_V1_PROC_STOP: v1.started[e->p] = e->type == GT_V1_PROC_START; break;
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: gt_v1_pages_running(e->p, g); return;
    case GT_V1_GO_PREEMPT:
        if (e->arg[0])
            break;
        gt_v1_pages_stopped(e->p, e->seq, e->ts);
        return;
    case GT_V1_GO_END:
    case GT_V1_GO_SCHED:
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET:
    case GT_V1_GO_SYS_BLOCK: break;
    default: return;
    }
    gt_v1_pages_running(e->p, NULL);
}

bool gt_v1_stands(const struct gt_v1_stands *e)
{
    uint64_t id = named_in(e);
    struct gt_merge_g *g = id ? gt_merge_goroutine(&gt_merge_for_v1, id) : NULL;
    if (id && !g)
        return false;
    if (g)
        stands_of(g, e);
    stands_on(e, g);
    v1.collections += e->type == GT_V1_GC_START;
    gt_v1_pages_counted(e->seq);
    gt_merge_move_on(&gt_merge_for_v1, e->ts);
    return true;
}

/* Events ------------------------------------------------------------------------------------- */

#define ARGS(...) ((const uint64_t[GT_V1_ARGS_MAX]){__VA_ARGS__})

static void put_at(const struct gt_merge_event *ev, enum gt_v1_type type, const uint64_t *args)
{
    gt_v1_pages_event(type, ev->p, ev->ts, args, NULL, 0);
}

static void go_unblock(const struct gt_merge_event *ev, uint64_t stack)
{
    struct gt_merge_g *g = ev->g;
    g->v1_seq++;
    if (g->v1_p == ev->p && gt_v1_has(gt_format, GT_V1_GO_UNBLOCK_LOCAL))
        put_at(ev, GT_V1_GO_UNBLOCK_LOCAL, ARGS(g->id, stack));
    else
        put_at(ev, GT_V1_GO_UNBLOCK, ARGS(g->id, g->v1_seq, stack));
    g->v1_p = ev->p;
}

static void go_start(const struct gt_merge_event *ev)
{
    uint64_t args[GT_V1_ARGS_MAX] = {0};
    enum gt_v1_type type = start_on(ev->g, ev->p, args);
    put_at(ev, type, args);
    gt_v1_pages_running(ev->p, ev->g);
}

/* Writes an event with which the P's goroutine stops. */
static void put_stop(const struct gt_merge_event *ev, enum gt_v1_type type, const uint64_t *args)
{
    put_at(ev, type, args);
    gt_v1_pages_running(ev->p, NULL);
}

/*
 * Only an event that starts a goroutine has its label. So a goroutine that runs is stopped and
 * started again, as at the end of a page. It might never start again else. A goroutine that writes
 * its name to a file of the kernel's is in that call: it starts when the call is over.
 */
static void go_label(const struct gt_merge_event *ev, uint32_t label)
{
    bool is_new = !ev->g->v1_named || ev->g->v1_label != label;
    ev->g->v1_named = true;
    ev->g->v1_label = label;
    if (is_new && ev->g->state == GT_G_RUNNING && gt_v1_has(gt_format, GT_V1_GO_START_LABEL)) {
        put_stop(ev, GT_V1_GO_PREEMPT, ARGS(0));
        go_start(ev);
    }
}

/* its: the stack where the goroutine began, or 0. */
static void go_create(const struct gt_merge_event *ev, uint64_t its, uint64_t stack)
{
    uint64_t unknown = ev->g->id == 1 ? GT_V1_STACK_MAIN : GT_V1_STACK_UNKNOWN;
    ev->g->known = true;
    ev->g->v1_seq = 0;
    ev->g->v1_p = ev->p;
    put_at(ev, GT_V1_GO_CREATE, ARGS(ev->g->id, gt_v1_tables_routine(its ? its : unknown), stack));
}

/* Holds an event of a collection, whose events are together in its thread's stream. */
static void hold(const struct gt_merge_event *ev, enum gt_v1_type type, const uint64_t *args)
{
    gt_v1_pages_hold(type, ev->p, ev->ts, args);
}

/* Writes a goroutine that existed when recording began. */
static void go_status(const struct gt_merge_event *ev, uint64_t its)
{
    struct gt_merge_g *g = ev->g;
    if (g->known)
        return;
    go_create(ev, its, 0);
    if (g->state == GT_G_RUNNING) {
        go_start(ev);
    } else if (g->state != GT_G_RUNNABLE) {
        g->v1_seq++;
        put_at(ev, g->state == GT_G_WAITING ? GT_V1_GO_WAITING : GT_V1_GO_IN_SYSCALL, ARGS(g->id));
    }
}

static void proc_start(const struct gt_merge_event *ev, uint64_t p)
{
    if (v1.started[p])
        return;
    v1.started[p] = true;
    put_at(ev, GT_V1_PROC_START, ARGS(ev->m));
}

/* Strings of a Go program's trace for which v1 has events or numbers. */
static struct word {
    const char *text;
    enum gt_v1_type type;
    uint64_t id;
} go_reasons[] = {
    {"chan send", GT_V1_GO_BLOCK_SEND, 0},
    {"chan receive", GT_V1_GO_BLOCK_RECV, 0},
    {"select", GT_V1_GO_BLOCK_SELECT, 0},
    {"GC mark assist wait for work", GT_V1_GO_BLOCK_GC, 0},
};
enum { GO_REASONS = sizeof go_reasons / sizeof *go_reasons };
static uint64_t stw_ids[GT_V1_STW_KINDS];

static uint64_t id_of(const char *text)
{
    const struct gt_string *s = gt_strings_intern(text);
    return s ? s->id : 0;
}

void gt_v1_of_go(void)
{
    v1.of_go = true;
    for (int i = 0; i < GO_REASONS; i++)
        go_reasons[i].id = id_of(go_reasons[i].text);
    for (int i = 1; i < GT_V1_STW_KINDS; i++)
        stw_ids[i] = id_of(gt_v1_stw_kinds[i]);
}

static enum gt_v1_type go_block_type(uint64_t reason)
{
    for (int i = 0; i < GO_REASONS; i++) {
        if (reason == go_reasons[i].id && gt_v1_has(gt_format, go_reasons[i].type))
            return go_reasons[i].type;
    }
    return GT_V1_GO_BLOCK;
}

static enum gt_v1_type block_type(uint64_t reason)
{
    switch (reason) {
    case GT_REASON_SYNC: return GT_V1_GO_BLOCK_SYNC;
    case GT_REASON_COND: return GT_V1_GO_BLOCK_COND;
    case GT_REASON_SLEEP: return GT_V1_GO_SLEEP;
    case GT_REASON_NETWORK: return GT_V1_GO_BLOCK_NET;
    default: return v1.of_go ? go_block_type(reason) : GT_V1_GO_BLOCK;
    }
}

/* Always has the number: readers do not know which goroutine a GoSysExitLocal is about. */
static void syscall_exit(const struct gt_merge_event *ev)
{
    struct gt_merge_g *g = ev->g;
    uint64_t seq = ++g->v1_seq;
    if (gt_v1_global_order(gt_format))
        seq = gt_v1_pages_next_seq();
    put_at(ev, GT_V1_GO_SYS_EXIT, ARGS(g->id, seq, ev->ts));
    g->v1_p = ev->p;
}

/*
 * In Go a P whose goroutine stays in a call is given to another thread. The tools from 1.23 on
 * show a call as lasting until its P stops, or panic if the P stops later. So the P stops here,
 * for no time.
 */
static void syscall_end(const struct gt_merge_event *ev)
{
    if (gt_format->after_call == GT_AFTER_CALL_STOP_START) {
        put_at(ev, GT_V1_PROC_STOP, ARGS(0));
        put_at(ev, GT_V1_PROC_START, ARGS(ev->m));
    }
    syscall_exit(ev);
    go_start(ev);
}

static void syscall_begin(const struct gt_merge_event *ev, uint64_t stack)
{
    put_at(ev, GT_V1_GO_SYS_CALL, ARGS(stack));
    v1.call.g = ev->g;
    v1.call.p = ev->p;
    v1.call.ts = ev->ts;
}

/*
 * Decides whether a call that has begun blocks. ev: the next event, or NULL. Returns whether ev
 * only says that the call is over at once, as in Go.
 */
static bool settle_call(const struct gt_merge_event *ev)
{
    bool over = v1.of_go && ev && ev->type == GT_EV_GO_SYSCALL_END && ev->g == v1.call.g &&
                ev->ts == v1.call.ts;
    if (v1.call.g && !over) {
        gt_v1_pages_event(GT_V1_GO_SYS_BLOCK, v1.call.p, v1.call.ts, ARGS(0), NULL, 0);
        gt_v1_pages_running(v1.call.p, NULL);
    }
    v1.call.g = NULL;
    return over;
}

/*
 * Only in traces of Go programs: a C thread has called Go. destroy_in_call is the end of such a
 * thread.
 */
static void create_in_call(const struct gt_merge_event *ev)
{
    go_create(ev, 0, 0);
    ev->g->v1_seq++;
    put_at(ev, GT_V1_GO_IN_SYSCALL, ARGS(ev->g->id));
}

static void proc_stop(const struct gt_merge_event *ev, uint64_t p)
{
    v1.started[p] = false;
    gt_v1_pages_event(GT_V1_PROC_STOP, (uint32_t)p, ev->ts, ARGS(0), NULL, 0);
}

static void destroy_in_call(const struct gt_merge_event *ev)
{
    syscall_exit(ev);
    go_start(ev);
    put_stop(ev, GT_V1_GO_END, ARGS(0));
    if (v1.started[ev->p])
        proc_stop(ev, ev->p);
}

/*
 * Writes a collection's beginning or end. Collections of the Boehm collector are held, and written
 * as a whole when they are over.
 */
static void collect(const struct gt_merge_event *ev, bool begins)
{
    enum gt_v1_type type = begins ? GT_V1_GC_START : GT_V1_GC_DONE;
    const uint64_t *args = begins ? ARGS(v1.collections++, v1.of_go ? ev->arg[1] : 0) : ARGS(0);
    if (!v1.of_go)
        hold(ev, type, args);
    else if (begins != v1.collects)
        put_at(ev, type, args);
    v1.collects = begins && v1.of_go;
    if (!begins && !v1.of_go)
        gt_v1_pages_release();
}

/* The reason of a pause as a number; GT_V1_STW_KINDS: this version has none. */
static uint64_t stw_kind(uint64_t reason)
{
    uint64_t kind = 1;
    while (kind < GT_V1_STW_KINDS && stw_ids[kind] != reason)
        kind++;
    if (gt_format->v1_marking)
        return kind < GT_V1_STW_KINDS ? kind : 0;
    uint64_t kinds = gt_format->minor < 10 ? GT_V1_STW_MARKING : GT_V1_STW_SWEEPING;
    return kind <= kinds ? kind - GT_V1_STW_MARKING : GT_V1_STW_KINDS;
}

static void stop_the_world(const struct gt_merge_event *ev, bool begins)
{
    uint64_t kind = v1.of_go ? stw_kind(ev->arg[0]) : gt_format->v1_marking;
    if (begins ? v1.stands || kind == GT_V1_STW_KINDS : !v1.stands && v1.of_go)
        return;
    enum gt_v1_type type = begins ? GT_V1_STW_START : GT_V1_STW_DONE;
    (v1.of_go ? put_at : hold)(ev, type, ARGS(begins ? kind : 0));
    v1.stands = begins && v1.of_go;
}

static void user_log(const struct gt_merge_event *ev)
{
    const char *value;
    uint32_t len = gt_v1_tables_value(ev->arg[2], &value);
    gt_v1_pages_event(GT_V1_USER_LOG, ev->p, ev->ts,
                      ARGS(ev->arg[0], gt_v1_tables_text(ev->arg[1]), ev->arg[3]), value, len);
}

static void user_event(const struct gt_merge_event *ev)
{
    const uint64_t *a = ev->arg;
    if (!gt_v1_has(gt_format, GT_V1_USER_LOG))
        return;
    switch (ev->type) {
    case GT_EV_USER_TASK_BEGIN:
        put_at(ev, GT_V1_USER_TASK_CREATE, ARGS(a[0], a[1], gt_v1_tables_text(a[2]), a[3]));
        break;
    case GT_EV_USER_TASK_END: put_at(ev, GT_V1_USER_TASK_END, a); break;
    case GT_EV_USER_REGION_BEGIN:
        put_at(ev, GT_V1_USER_REGION, ARGS(a[0], 0, gt_v1_tables_text(a[1]), a[2]));
        break;
    case GT_EV_USER_REGION_END:
        put_at(ev, GT_V1_USER_REGION, ARGS(a[0], 1, a[1], a[2])); /* the id it began with */
        break;
    default: user_log(ev); break;
    }
}

static void mark_assist(const struct gt_merge_event *ev, enum gt_v1_type type)
{
    if (gt_v1_has(gt_format, type))
        put_at(ev, type, ev->arg);
}

static void translate(const struct gt_merge_event *ev)
{
    const uint64_t *a = ev->arg;
    gt_watch_meanwhile();
    if (settle_call(ev))
        return;
    switch (ev->type) {
    case GT_EV_PROCS_CHANGE: put_at(ev, GT_V1_GOMAXPROCS, a); break;
    case GT_EV_PROC_STATUS:
        if (a[1] != GT_P_IDLE)
            proc_start(ev, a[0]);
        break;
    case GT_EV_PROC_START: proc_start(ev, a[0]); break;
    case GT_EV_PROC_STOP: proc_stop(ev, ev->p); break;
    case GT_EV_PROC_STEAL:
        if (v1.started[a[0]])
            proc_stop(ev, a[0]);
        break;
    case GT_EV_GO_STATUS: go_status(ev, 0); break;
    case GT_EV_GO_STATUS_STACK: go_status(ev, a[3]); break;
    case GT_EV_GO_CREATE_SYSCALL: create_in_call(ev); break;
    case GT_EV_GO_DESTROY_SYSCALL: destroy_in_call(ev); break;
    case GT_EV_GO_CREATE: go_create(ev, a[1], a[2]); break;
    case GT_EV_GO_START: go_start(ev); break;
    case GT_EV_GO_DESTROY: put_stop(ev, GT_V1_GO_END, a); break;
    case GT_EV_GO_STOP:
        put_stop(ev, a[0] == GT_REASON_PREEMPTED ? GT_V1_GO_PREEMPT : GT_V1_GO_SCHED, ARGS(a[1]));
        break;
    case GT_EV_GO_BLOCK: put_stop(ev, block_type(a[0]), ARGS(a[1])); break;
    case GT_EV_GO_UNBLOCK: go_unblock(ev, a[2]); break;
    case GT_EV_GO_SYSCALL_BEGIN: syscall_begin(ev, a[1]); break;
    case GT_EV_GO_SYSCALL_END: syscall_end(ev); break;
    case GT_EV_GO_SYSCALL_END_BLOCKED: syscall_exit(ev); break;
    case GT_EV_GO_LABEL: go_label(ev, (uint32_t)a[0]); break;
    case GT_EV_HEAP_ALLOC: put_at(ev, GT_V1_HEAP_ALLOC, a); break;
    case GT_EV_HEAP_GOAL: put_at(ev, GT_V1_HEAP_GOAL, a); break;
    case GT_EV_GC_BEGIN:
    case GT_EV_GC_END: collect(ev, ev->type == GT_EV_GC_BEGIN); break;
    case GT_EV_STW_BEGIN:
    case GT_EV_STW_END: stop_the_world(ev, ev->type == GT_EV_STW_BEGIN); break;
    case GT_EV_GC_SWEEP_BEGIN: put_at(ev, GT_V1_GC_SWEEP_START, ARGS(a[0])); break;
    case GT_EV_GC_SWEEP_END: put_at(ev, GT_V1_GC_SWEEP_DONE, a); break;
    case GT_EV_GC_MARK_ASSIST_BEGIN: mark_assist(ev, GT_V1_GC_MARK_ASSIST_START); break;
    case GT_EV_GC_MARK_ASSIST_END: mark_assist(ev, GT_V1_GC_MARK_ASSIST_DONE); break;
    case GT_EV_USER_TASK_BEGIN:
    case GT_EV_USER_TASK_END:
    case GT_EV_USER_REGION_BEGIN:
    case GT_EV_USER_REGION_END:
    case GT_EV_USER_LOG: user_event(ev); break;
    default: break;
    }
}

void gt_v1_set_cpus(uint64_t n)
{
    v1.cpus = n;
}

static uint64_t cpus(void)
{
    return v1.cpus ? v1.cpus : (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

/*
 * Begins the file with the number of CPUs. Readers refuse a trace without events, and a killed
 * program would leave one if only tables were written. Readers from 1.23 on take events before
 * that number for the state when recording began. The web pages of Go 1.23 then panic over
 * goroutines that were running.
 */
static void begin(uint64_t from)
{
    v1.begun = true;
    gt_v1_tables_origin();
    gt_v1_tables_frequency();
    gt_v1_pages_event(GT_V1_GOMAXPROCS, 0, from ? from : 1, ARGS(cpus()), NULL, 0);
    gt_v1_tables_unknown();
    if (v1.of_go)
        gt_v1_tables_of_go();
}

/*
 * Writes a sample. Its event is on P 0, which has no meaning. It is at the end of the generation,
 * not at the sample's time, because readers sort samples by the time in an argument.
 */
static void put_sample(const struct gt_taken_sample *s)
{
    uint64_t stack = s->stack ? s->stack->id : 0;
    if (!gt_v1_has(gt_format, GT_V1_CPU_SAMPLE))
        return;
    gt_v1_pages_event(GT_V1_CPU_SAMPLE, 0, gt_merge_time(&gt_merge_for_v1),
                      ARGS(s->ts, s->p, s->g, stack), NULL, 0);
}

int gt_v1_write(uint32_t gen, const struct gt_kept *kept, const struct gt_buf *packed,
                const struct gt_buf *plain, uint64_t until)
{
    int error = 0;
    bool first = !v1.begun, events = plain || gt_sched_covers(gen);
    size_t samples = kept ? kept->n_samples : gt_samples_use(gen, until);
    if (first)
        begin(kept ? kept->from : atomic_load(&gt_gen.from));
    gt_v1_tables_frequency();
    if (events || samples || first) { /* else the generation has only statuses */
        gt_v1_tables_write(gen, kept);
        gt_v1_tables_account(plain);
        gt_texts_index(plain);
        error = gt_merge(&gt_merge_for_v1, gen, packed, plain, NULL, translate);
        gt_texts_index(NULL);
        settle_call(NULL);
        if (kept)
            gt_samples_tell(kept->samples, kept->n_samples, put_sample);
        else
            gt_samples_each(until, put_sample);
    }
    if ((events || first) && !error)
        gt_v1_pages_ran(gt_merge_time(&gt_merge_for_v1));
    gt_v1_pages_flush();
    return error;
}

/*
 * Ends the file with the number of CPUs once more: an event that needs no running goroutine, and
 * changes nothing.
 */
void gt_v1_end(uint64_t ts, bool whole)
{
    if (!v1.begun)
        begin(ts);
    gt_merge_move_on(&gt_merge_for_v1, ts);
    ts = gt_merge_time(&gt_merge_for_v1);
    if (v1.stands) /* viewers need its end */
        gt_v1_pages_event(GT_V1_STW_DONE, 0, ts, ARGS(0), NULL, 0);
    if (v1.collects)
        gt_v1_pages_event(GT_V1_GC_DONE, 0, ts, ARGS(0), NULL, 0);
    gt_v1_pages_event(GT_V1_GOMAXPROCS, 0, ts, ARGS(cpus()), NULL, 0);
    gt_v1_pages_ran(ts);
    if (whole)
        gt_v1_tables_whole();
    gt_v1_pages_flush();
}
