/* See cpus.h. */
#include "cpus.h"

#include "encoder/thread/procs.h"
#include "encoder/thread/writer.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/memo.h"
#include "encoder/base/sparse.h"

#include <string.h>

#define NO_P GT_MERGE_NO_P

struct place {
    uint32_t m;     /* the thread that has it; 0: it is idle */
    uint32_t round; /* of encoding in which its status was written */
    bool in_call;   /* its thread is in a call and keeps it */
    uint64_t seq;
    uint64_t left; /* when it became idle, by an event of left_stream */
    uint32_t left_stream;
};

/* Memory for the events of a batch. */
union block {
    union block *next; /* free */
    uint8_t data[GT_PIECE];
};

/*
 * A thread's stream. It has a block only while its batch has events: most threads may be
 * short-lived.
 */
struct out {
    union block *block;
    uint64_t from, last;
    uint32_t m, stream, used, events;
    uint32_t p;
    uint32_t own; /* its writer's: no other living thread has it */
    bool lent;    /* p is only lent, until its goroutine stops: it should have none */
    bool running; /* its goroutine runs */
};

/*
 * Readers see an event early, by at most 1 ns for each event before it in the batch (writer.h,
 * rule 6). In batches of the usual length that would be more than a CPU takes to change hands, so
 * these batches are shorter.
 */
enum { BATCH_EVENTS = 100, EARLY_NS = BATCH_EVENTS + 10 };
enum { EVENTS_AT_ONCE = 5 };
_Static_assert((BATCH_EVENTS + EVENTS_AT_ONCE) * 16 < GT_PIECE, "a batch may be shorter, too");

static struct place places[NO_P + 1] GT_SPARSE_LARGE;

static struct {
    uint32_t cpus;     /* P numbers below this are CPUs */
    uint32_t end;      /* P numbers from here on were never used */
    uint32_t round;    /* of encoding */
    struct gt_memo of; /* thread → P + 1, when the generation began */
    _Atomic int64_t added;
    int64_t more;       /* not added to `added` yet */
    uint64_t collected; /* when the last collection ended, by an event of `collector` */
    uint32_t collector;

    uint32_t gen;
    struct out *out;
    size_t n;
    struct gt_arena blocks;
    union block *free;
    struct gt_packed packed;
    bool failed; /* there was no memory */
} cpus;

void gt_cpus_init(uint32_t n)
{
    cpus.cpus = n;
    gt_procs_reserve(n);
}

uint32_t gt_cpus_count(void)
{
    return cpus.cpus;
}

int64_t gt_cpus_added(void)
{
    return atomic_load(&cpus.added);
}

void gt_cpus_reset(void)
{
    if (cpus.end)
        memset(places, 0, cpus.end * sizeof *places);
    cpus.end = 0;
    gt_memo_free(&cpus.of);
    cpus.blocks = (struct gt_arena){.chunk = NULL}; /* a fork may have found it in use */
    cpus.free = NULL;
}

/* Bytes -------------------------------------------------------------------------------------- */

static void write_batch(struct out *b)
{
    if (!b->block)
        return;
    if (!gt_batch_pack(&cpus.packed, cpus.gen, b->m, b->from, b->block->data, b->used))
        cpus.failed = true;
    b->block->next = cpus.free;
    cpus.free = b->block;
    b->block = NULL;
}

static bool begin_batch(struct out *b, uint64_t ts)
{
    b->block = cpus.free ? cpus.free : gt_arena_alloc(&cpus.blocks, sizeof *b->block);
    cpus.failed |= !b->block;
    if (b->block && b->block == cpus.free)
        cpus.free = b->block->next;
    b->used = b->events = 0;
    b->from = b->last = ts;
    return b->block;
}

static void write_event(struct out *b, enum gt_event_type type, uint64_t ts, const uint64_t *args)
{
    ts = ts > b->last ? ts : b->last;
    if (!b->block && !begin_batch(b, ts))
        return;
    uint8_t *p = b->block->data + b->used;
    *p++ = (uint8_t)type;
    p = gt_varint_put(p, ts - b->last);
    for (int i = 0; i < gt_event_args[type]; i++)
        p = gt_varint_put(p, args[i]);
    b->used = (uint32_t)(p - b->block->data);
    b->last = ts;
    b->events++;
    cpus.more++;
}

/*
 * The time, ts or later, of an effect of an event at `cause` in another stream: readers must see
 * it later than its cause.
 */
static uint64_t after(const struct out *b, uint64_t ts, uint64_t cause, uint32_t stream)
{
    uint64_t least = cause + gt_clock_units(EARLY_NS);
    ts = ts > b->last ? ts : b->last;
    return stream != b->stream && ts < least ? least : ts;
}

/* Ps ----------------------------------------------------------------------------------------- */

static void take_p(struct out *b, uint32_t p)
{
    places[p].m = b->m;
    b->p = p;
    if (p >= cpus.end)
        cpus.end = p + 1;
}

static void tell_status(struct out *b, uint32_t p, uint64_t ts, enum gt_p_state state)
{
    struct place *place = &places[p];
    place->round = cpus.round;
    place->seq = 0;
    place->in_call = state == GT_P_SYSCALL;
    write_event(b, GT_EV_PROC_STATUS, ts, (const uint64_t[]){p, state});
}

/* The thread gets the CPU's P, or its own P if another thread seems to be on that CPU. */
static void start_p(struct out *b, uint32_t cpu, uint64_t ts)
{
    uint32_t p = cpu < cpus.cpus && !places[cpu].m ? cpu : b->own;
    if (b->own == NO_P) /* the stream has not begun, or has ended: no goroutine */
        return;
    struct place *place = &places[p];
    ts = after(b, ts, place->left, place->left_stream);
    if (place->round != cpus.round)
        tell_status(b, p, ts, GT_P_IDLE);
    take_p(b, p);
    place->in_call = false;
    write_event(b, GT_EV_PROC_START, ts, (const uint64_t[]){p, ++place->seq});
}

static void stop_p(struct out *b, uint64_t ts)
{
    struct place *place = &places[b->p];
    write_event(b, GT_EV_PROC_STOP, ts, NULL);
    *place = (struct place){
        .round = place->round, .seq = place->seq, .left = b->last, .left_stream = b->stream};
    b->p = NO_P;
    b->lent = false;
}

static void own_status(struct out *b, const struct gt_merge_event *ev)
{
    b->own = (uint32_t)ev->arg[0];
    if (b->p != NO_P) {
        bool in_call = places[b->p].in_call;
        tell_status(b, b->p, ev->ts, in_call ? GT_P_SYSCALL : GT_P_RUNNING);
    } else if (!ev->away && places[b->own].round) {
        start_p(b, GT_NO_CPU, ev->ts); /* the reader knows that it is idle */
    } else if (!ev->away && ev->arg[1] != GT_P_IDLE) {
        take_p(b, b->own);
        tell_status(b, b->p, ev->ts, (enum gt_p_state)ev->arg[1]);
    }
}

static void proc_start(struct out *b, const struct gt_merge_event *ev)
{
    if (!ev->added)
        b->own = (uint32_t)ev->arg[0];
    if (b->p != NO_P && b->lent && !b->running)
        stop_p(b, ev->ts);
    b->lent = false;
    if (b->p == NO_P)
        start_p(b, ev->added ? (uint32_t)ev->arg[0] : GT_NO_CPU, ev->ts);
}

static void proc_stop(struct out *b, const struct gt_merge_event *ev)
{
    if (b->p != NO_P)
        stop_p(b, ev->ts);
    if (!ev->added) {
        b->own = NO_P;
        write_batch(b);
    }
}

/* Goroutines --------------------------------------------------------------------------------- */

static void write_start(struct out *b, struct gt_merge_g *g, uint64_t ts)
{
    write_event(b, GT_EV_GO_START, after(b, ts, g->out_ts, g->out_stream),
                (const uint64_t[]){g->id, ++g->out_seq});
    b->running = true;
}

/* The call is over. In Go a call that kept its P has another end event than one that lost it. */
static void end_call(struct out *b, const struct gt_merge_event *ev)
{
    struct place *place = &places[b->p];
    if (place->in_call) {
        place->in_call = false;
        write_event(b, GT_EV_GO_SYSCALL_END, ev->ts, NULL);
        b->running = true;
        return;
    }
    write_event(b, GT_EV_GO_SYSCALL_END_BLOCKED, ev->ts, NULL);
    write_start(b, ev->g, b->last);
}

static void begin_call(struct out *b, const struct gt_merge_event *ev)
{
    struct place *place = &places[b->p];
    write_event(b, ev->type, ev->ts, (const uint64_t[]){++place->seq, ev->arg[1]});
    place->in_call = true;
    b->running = false;
}

/* Collections follow one another: the next one begins later than the last one ended. */
static void put_collection(struct out *b, const struct gt_merge_event *ev)
{
    bool begins = ev->type == GT_EV_GC_BEGIN;
    uint64_t ts = begins ? after(b, ev->ts, cpus.collected, cpus.collector) : ev->ts;
    write_event(b, ev->type, ts, ev->arg);
    cpus.collected = b->last;
    cpus.collector = b->stream;
}

/* Numbers starts and unblocks anew, because events were added between them. */
static void put_event(struct out *b, const struct gt_merge_event *ev)
{
    struct gt_merge_g *g = ev->g;
    switch (ev->type) {
    case GT_EV_GO_START: write_start(b, g, ev->ts); return;
    case GT_EV_GO_SYSCALL_BEGIN: begin_call(b, ev); return;
    case GT_EV_GO_SYSCALL_END: end_call(b, ev); return;
    case GT_EV_GC_BEGIN:
    case GT_EV_GC_END: put_collection(b, ev); return;
    case GT_EV_GO_UNBLOCK:
        write_event(b, ev->type, after(b, ev->ts, g->out_ts, g->out_stream),
                    (const uint64_t[]){g->id, ++g->out_seq, ev->arg[2]});
        return;
    case GT_EV_GO_CREATE:
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: g->out_seq = 0; break;
    case GT_EV_GO_STOP:
    case GT_EV_GO_BLOCK:
    case GT_EV_GO_DESTROY: b->running = false; break;
    default: break;
    }
    write_event(b, ev->type, ev->ts, ev->arg);
}

static bool needs_p(enum gt_event_type type)
{
    return type != GT_EV_GO_STATUS && type != GT_EV_GO_STATUS_STACK;
}

/* Whether the event is a running goroutine's status, written by its own thread. */
static bool is_running(const struct gt_merge_event *ev, const struct out *b)
{
    return !needs_p(ev->type) && ev->arg[2] == GT_G_RUNNING && ev->arg[1] == b->m;
}

static void put_other(struct out *b, const struct gt_merge_event *ev)
{
    if (b->p == NO_P && needs_p(ev->type)) {
        start_p(b, GT_NO_CPU, ev->ts);
        b->lent = b->p != NO_P;
    }
    b->running |= is_running(ev, b);
    put_event(b, ev);
    if (b->lent && !b->running && !places[b->p].in_call)
        stop_p(b, b->last);
    if (ev->g) {
        ev->g->out_ts = b->last;
        ev->g->out_stream = b->stream;
    }
}

/* What another process's trace has ----------------------------------------------------------- */

void gt_cpus_go_on(void)
{
    for (uint32_t p = 0; p <= NO_P; p++)
        places[p] = (struct place){.round = 1};
    cpus.round = 1;
    cpus.end = NO_P + 1;
}

void gt_cpus_held(uint32_t p, uint32_t m, bool in_call)
{
    places[p].m = m;
    places[p].in_call = in_call;
}

void gt_cpus_stood(const struct gt_merge_event *ev)
{
    bool in_call = ev->type == GT_EV_GO_SYSCALL_BEGIN;
    switch (ev->type) {
    case GT_EV_PROC_STATUS:
        gt_cpus_held((uint32_t)ev->arg[0], ev->arg[1] == GT_P_IDLE ? 0 : ev->m,
                     ev->arg[1] == GT_P_SYSCALL);
        break;
    case GT_EV_PROC_STOP: gt_cpus_held(ev->p, 0, false); break;
    case GT_EV_PROC_START:
    case GT_EV_GO_SYSCALL_BEGIN:
    case GT_EV_GO_SYSCALL_END: gt_cpus_held(ev->p, ev->m, in_call); break;
    default: break;
    }
}

/* A generation ------------------------------------------------------------------------------- */

static struct out *out_of(const struct gt_merge_event *ev)
{
    struct out *b = &cpus.out[ev->stream];
    if (!b->m) {
        uint64_t p = gt_memo_find(&cpus.of, ev->m);
        b->m = ev->m;
        b->stream = ev->stream;
        b->p = p ? (uint32_t)p - 1 : NO_P;
        b->own = NO_P;
    }
    if (b->block && (b->events >= BATCH_EVENTS || b->used >= GT_PIECE - GT_EVENT_ROOM))
        write_batch(b);
    return b;
}

void gt_cpus_put(const struct gt_merge_event *ev)
{
    struct out *b = out_of(ev);
    if (cpus.failed)
        return;
    cpus.more -= !ev->added;
    switch (ev->type) {
    case GT_EV_PROC_STATUS: own_status(b, ev); break;
    case GT_EV_PROC_START: proc_start(b, ev); break;
    case GT_EV_PROC_STOP: proc_stop(b, ev); break;
    default: put_other(b, ev); break;
    }
}

static bool find_holders(void)
{
    bool all = true;
    gt_memo_free(&cpus.of);
    for (uint32_t p = 0; p < cpus.end; p++) {
        uint32_t m = places[p].m;
        uint64_t *of = m ? gt_memo_at(&cpus.of, m) : NULL;
        if (of)
            *of = p + 1;
        all &= of || !m;
    }
    return all;
}

bool gt_cpus_begin(uint32_t gen, size_t streams)
{
    cpus.gen = gen;
    cpus.round++;
    cpus.packed = (struct gt_packed){.again = true};
    cpus.failed = false;
    cpus.more = 0;
    cpus.collected = 0;
    cpus.n = streams;
    cpus.out = streams ? gt_pages_alloc(streams * sizeof *cpus.out) : NULL;
    return find_holders() && (cpus.out || !streams);
}

bool gt_cpus_end(struct gt_packed *packed)
{
    for (size_t i = 0; i < cpus.n && cpus.out[i].m; i++)
        write_batch(&cpus.out[i]);
    gt_pages_free(cpus.out, cpus.n * sizeof *cpus.out);
    gt_arena_free(&cpus.blocks);
    cpus.free = NULL;
    atomic_fetch_add(&cpus.added, cpus.more);
    *packed = cpus.packed;
    return !cpus.failed;
}
