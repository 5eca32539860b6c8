/*
 * See merge.h.
 *
 * Each thread is a stream. A heap holds the streams whose next event may be ready, earliest first.
 * A stream whose next event must wait for a goroutine or a P is parked there, and goes back into
 * the heap when something happens to that goroutine or P.
 */
#include "merge.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/queue.h"
#include "encoder/base/sparse.h"

#include <errno.h>
#include <string.h>

#define BUCKETS 16384u

/* A P of the current trace. */
struct proc {
    struct gt_merge_stream *parked;
    uint32_t gen, seq;
    bool busy; /* a thread has it */
};

struct chunk {
    struct gt_strand strand;
    struct chunk *next; /* of the same thread */
};

struct gt_merge_stream {
    struct chunk *chunk, *last;
    struct gt_merge_event ev; /* the next event */
    struct gt_merge_g *g;     /* the goroutine on the thread */
    uint32_t p;
    struct absent {
        const struct gt_absence *next, *end; /* absences that have not begun */
        struct gt_absence now;
        enum { PRESENT, LEAVING, AWAY, BACK } at; /* LEAVING: ProcStop is due; BACK: GoStart is */
        struct gt_merge_g *g;                     /* ran before; NULL: it waits or is in a call */
        struct gt_merge_event own;                /* the thread's next event, until its turn */
        bool has_own;
        uint64_t last;    /* time of its last event */
        uint64_t started; /* when the wait was over that its last event ended */
        uint64_t stack;   /* where the thread was seen last */
    } absent;
    struct gt_merge_stream *next; /* parked at the same place */
    bool is_parked;
};

struct gt_merge {
    struct gt_merge_g *bucket[BUCKETS], *free;
    struct gt_arena arena;
    struct proc proc[GT_MERGE_NO_P + 1];
    uint64_t last_ts;

    uint32_t gen;
    struct gt_queue queue; /* of streams */
    size_t unfinished;
    uint64_t mended; /* events */
    bool used;
    int error; /* sticks: events after a contradiction mean nothing */
};

struct gt_merge gt_merge_for_v1 GT_SPARSE_LARGE, gt_merge_for_sched GT_SPARSE_LARGE;
static struct gt_merge *merge; /* the one at work */
static bool lenient;

/* All memory of one call of gt_merge: enough if each batch is of another thread. */
static struct {
    size_t bytes, chunks, streams, mask;
    struct chunk *chunk;
    struct gt_merge_stream *stream, **by_m;
} work;

/* Goroutines --------------------------------------------------------------------------------- */

/* The goroutine's entry; a new one has no state. NULL: no memory. */
static struct gt_merge_g *find_g(uint64_t id)
{
    struct gt_merge_g **bucket = &merge->bucket[id % BUCKETS], *g = *bucket;
    while (g && g->id != id)
        g = g->next;
    if (g)
        return g;
    g = merge->free;
    if (g)
        merge->free = g->next;
    else if (!(g = gt_arena_alloc(&merge->arena, sizeof *g)))
        return NULL;
    *g = (struct gt_merge_g){.id = id, .next = *bucket, .state = GT_G_NONE};
    return *bucket = g;
}

/* In a damaged trace a goroutine ends on two threads: the second end finds no entry. */
static void forget_g(struct gt_merge_g *g)
{
    struct gt_merge_g **link = &merge->bucket[g->id % BUCKETS];
    while (*link && *link != g)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = g->next;
    g->next = merge->free;
    merge->free = g;
}

void gt_merge_reset(struct gt_merge *which)
{
    merge = which;
    for (size_t i = 0; merge->used && i < BUCKETS; i++) {
        while (merge->bucket[i])
            forget_g(merge->bucket[i]);
    }
    if (merge->used) /* else they are zero: do not touch their pages */
        memset(merge->proc, 0, sizeof merge->proc);
    merge->last_ts = merge->mended = 0;
    merge->error = 0;
}

void gt_merge_be_lenient(void)
{
    lenient = true;
}

uint64_t gt_merge_mended(void)
{
    return gt_merge_for_v1.mended + gt_merge_for_sched.mended;
}

/* In a forked child: the parent's drain side may have been in the middle of a change. */
void gt_merge_after_fork(void)
{
    struct gt_merge *const both[] = {&gt_merge_for_v1, &gt_merge_for_sched};
    for (int i = 0; i < 2; i++) {
        if (!both[i]->used)
            continue;
        memset(both[i]->bucket, 0, sizeof both[i]->bucket);
        both[i]->free = NULL;
        both[i]->arena = (struct gt_arena){.chunk = NULL};
    }
}

/* Streams ------------------------------------------------------------------------------------ */

/* The slot of thread m in work.by_m. */
static size_t slot_of(uint32_t m)
{
    size_t i = m * 0x9e3779b9u & work.mask;
    while (work.by_m[i] && work.by_m[i]->last->strand.m != m)
        i = (i + 1) & work.mask;
    return i;
}

static void push(struct gt_merge_stream *s)
{
    gt_queue_push(&merge->queue, (struct gt_pair){s->ev.ts, (uintptr_t)s});
}

static void park(struct gt_merge_stream *s, struct gt_merge_stream **where)
{
    s->next = *where;
    s->is_parked = true;
    *where = s;
}

static void unpark(struct gt_merge_stream **where)
{
    while (*where) {
        struct gt_merge_stream *s = *where;
        *where = s->next;
        s->is_parked = false;
        push(s);
    }
}

/* Decodes the thread's next event; false: that was the last one. */
static bool decode(struct gt_merge_stream *s, struct gt_merge_event *ev)
{
    while (s->chunk && s->chunk->strand.pos == s->chunk->strand.end)
        s->chunk = s->chunk->next;
    if (!s->chunk)
        return false;
    struct gt_strand *strand = &s->chunk->strand;
    *ev = (struct gt_merge_event){.m = strand->m, .stream = (uint32_t)(s - work.stream)};
    ev->type = gt_strand_next(strand, ev->arg); /* apply refuses unknown types */
    ev->ts = strand->ts;
    return true;
}

/* Absences ----------------------------------------------------------------------------------- */

/*
 * The clocks of events and of absences differ by less than this; whatever happens between two of
 * them takes longer.
 */
enum { SLACK_NS = 300 };

static bool runs(const struct gt_merge_stream *s)
{
    return s->g && s->g->state == GT_G_RUNNING;
}

static void put(struct gt_merge_stream *s, enum gt_event_type type, uint64_t ts, uint64_t a,
                uint64_t b, uint64_t c)
{
    s->ev = (struct gt_merge_event){.type = type,
                                    .m = s->last->strand.m,
                                    .stream = (uint32_t)(s - work.stream),
                                    .ts = ts,
                                    .added = true,
                                    .arg = {a, b, c}};
}

static bool is_status(enum gt_event_type type)
{
    return type == GT_EV_GO_STATUS || type == GT_EV_GO_STATUS_STACK || type == GT_EV_PROC_STATUS;
}

static bool ends_wait(const struct gt_merge_stream *s)
{
    enum gt_event_type type = s->absent.own.type;
    return !s->g && s->absent.has_own && (type == GT_EV_GO_START || type == GT_EV_GO_UNBLOCK);
}

/* Whether the event is in a collection, which its thread writes as a whole when it is over. */
static bool is_in_collection(enum gt_event_type type)
{
    return type == GT_EV_STW_BEGIN || type == GT_EV_STW_END || type == GT_EV_GC_END;
}

/*
 * Begins the next absence if the thread loses its CPU before its next event. In a call or a wait a
 * ProcStop is all it adds; a goroutine that runs is stopped or blocked first.
 */
static bool leave(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    const struct gt_absence *next = a->next;
    uint64_t until = a->has_own ? a->own.ts : GT_ABSENT;
    bool whole = a->has_own && (is_status(a->own.type) || is_in_collection(a->own.type));
    if (next == a->end || whole)
        return false;
    uint64_t from = next->from > a->last ? next->from : a->last;
    if (runs(s) ? next->to > until : from >= until)
        return false;
    a->now = *a->next++;
    a->now.from = a->last = from;
    a->g = runs(s) ? s->g : NULL;
    a->at = a->g ? LEAVING : AWAY;
    if (a->now.stack)
        a->stack = a->now.stack;
    if (!a->g)
        put(s, GT_EV_PROC_STOP, a->now.from, 0, 0, 0);
    else if (a->now.preempted)
        put(s, GT_EV_GO_STOP, a->now.from, GT_REASON_PREEMPTED, a->stack, 0);
    else
        put(s, GT_EV_GO_BLOCK, a->now.from, GT_REASON_UNSEEN, a->stack, 0);
    return true;
}

/*
 * The thread has a CPU again. early: its own next event proves that before the absence is over;
 * the rest of the absence follows later.
 */
static void arrive(struct gt_merge_stream *s, uint64_t ts, bool early)
{
    struct absent *a = &s->absent;
    a->last = ts > a->last ? ts : a->last;
    put(s, GT_EV_PROC_START, a->last, early ? GT_NO_CPU : a->now.cpu, 0, 0);
    a->next -= early;
}

/*
 * The thread's goroutine was running before the absence, and goes on. An event that the thread
 * wrote during the absence needs the goroutine to run, so the thread comes back for that moment.
 */
static void come_back(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    bool early = a->has_own && a->own.ts < a->now.to;
    arrive(s, early ? a->own.ts : a->now.to, early);
    a->at = BACK;
}

/*
 * Whether the thread wrote its next event later than the event's time. That is so for events of a
 * wait that a spurious wake-up interrupted (struct gt_rewait), and for the end of a wait that
 * timed out (gt_writer.woken).
 */
static bool is_of_before(const struct gt_merge_stream *s)
{
    const struct gt_merge_event *own = &s->absent.own;
    return own->type == GT_EV_GO_START || (own->type == GT_EV_GO_UNBLOCK && !s->g) ||
           (own->type == GT_EV_GO_BLOCK && runs(s) && own->ts == s->absent.last);
}

/*
 * The thread has a CPU again, in a call or a wait. If it is the last time before the wait ends,
 * the goroutine really started then.
 */
static bool wait_on(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    uint64_t until = a->has_own ? a->own.ts : GT_ABSENT;
    bool later = a->next < a->end && a->next->from < until;
    bool early = a->now.to > until && a->now.to - until > gt_clock_units(SLACK_NS);
    if (early && is_of_before(s))
        return false;
    arrive(s, a->now.to < until ? a->now.to : until, early);
    if (ends_wait(s) && !later)
        a->own.ts = a->started = a->last;
    a->at = PRESENT;
    return true;
}

static bool while_away(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    if (a->has_own ? is_status(a->own.type) : a->now.to == GT_ABSENT)
        return false;
    if (!a->g)
        return wait_on(s);
    come_back(s);
    return true;
}

/*
 * Makes the next step of an absence the stream's next event, if it comes before the thread's own.
 */
static bool absence(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    switch (a->at) {
    case PRESENT: return leave(s);
    case LEAVING:
        put(s, GT_EV_PROC_STOP, a->now.from, 0, 0, 0);
        a->at = AWAY;
        return true;
    case AWAY: return while_away(s);
    default: break;
    }
    if (a->g->state == GT_G_WAITING) {
        put(s, GT_EV_GO_UNBLOCK, a->last, a->g->id, 0, a->stack);
    } else {
        put(s, GT_EV_GO_START, a->last, a->g->id, 0, 0);
        a->at = PRESENT;
    }
    return true;
}

/* The generation begins; the thread may be in an absence that began before. */
static void begin_away(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    if (a->at != PRESENT || a->next == a->end || a->next->from)
        return;
    a->now = *a->next++;
    a->at = AWAY;
    s->ev.away = true;
}

/*
 * The status of a goroutine that runs by its thread's own events. If the thread is absent, the
 * status becomes runnable or waiting. But if a state is known from the generation before, that
 * state is kept, even where the kernel's records contradict it by now.
 */
static void status_of_absent(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    struct gt_merge_g *g = find_g(s->ev.arg[0]);
    bool away = a->at == AWAY && !a->now.from;
    if (!g || a->g || (g->state == GT_G_NONE && !away) || merge != &gt_merge_for_sched)
        return;
    if (g->state == GT_G_RUNNING) {
        a->next -= away;
        a->at = PRESENT;
        return;
    }
    if (!away)
        a->now = (struct gt_absence){.to = s->ev.ts, .preempted = true, .cpu = GT_NO_CPU};
    uint8_t state = a->now.preempted ? GT_G_RUNNABLE : GT_G_WAITING;
    a->g = g;
    g->away = true;
    a->at = AWAY;
    s->ev.arg[1] = UINT64_MAX; /* trace.NoThread */
    s->ev.arg[2] = g->state == GT_G_NONE ? state : g->state;
}

static void begin_status(struct gt_merge_stream *s)
{
    if (s->ev.type == GT_EV_PROC_STATUS)
        begin_away(s);
    else if (is_status(s->ev.type) && s->ev.arg[2] == GT_G_RUNNING)
        status_of_absent(s);
}

/* Notes where the thread was seen last, in this generation. */
static void note_stack(struct gt_merge_stream *s)
{
    switch (s->ev.type) {
    case GT_EV_GO_STOP:
    case GT_EV_GO_BLOCK:
    case GT_EV_GO_SYSCALL_BEGIN: s->absent.stack = s->ev.arg[1]; break;
    case GT_EV_GO_UNBLOCK: s->absent.stack = s->ev.arg[2]; break;
    default: break;
    }
}

/* Finds the stream's next event; false: there is none. */
static bool advance(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    if (!a->has_own) {
        a->has_own = decode(s, &a->own);
        if (a->started && a->own.type == GT_EV_GO_START) /* it follows its own unblock */
            a->own.ts = a->started;
        a->started = 0;
    }
    if (absence(s))
        return true;
    if (!a->has_own)
        return false;
    s->ev = a->own;
    a->has_own = false;
    a->last = s->ev.ts;
    note_stack(s);
    begin_status(s);
    return true;
}

/* Rules -------------------------------------------------------------------------------------- */

/* Whether s's next event is the next thing that happens to a goroutine or P; parks s otherwise. */
static bool ready_g(struct gt_merge_stream *s, uint8_t state)
{
    struct gt_merge_g *g = find_g(s->ev.arg[0]);
    if (!g || s->ev.added ||
        (g->gen == merge->gen && g->seq + 1 == (uint32_t)s->ev.arg[1] && g->state == state &&
         !g->away))
        return true;
    park(s, &g->parked);
    return false;
}

static bool ready(struct gt_merge_stream *s)
{
    if (s->ev.type == GT_EV_GO_START)
        return ready_g(s, GT_G_RUNNABLE);
    if (s->ev.type == GT_EV_GO_UNBLOCK)
        return ready_g(s, GT_G_WAITING);
    if (s->ev.type != GT_EV_PROC_START || s->ev.added || s->ev.arg[0] >= GT_MERGE_NO_P)
        return true;
    struct proc *p = &merge->proc[s->ev.arg[0]];
    if (!p->busy && p->gen == merge->gen && p->seq + 1 == (uint32_t)s->ev.arg[1])
        return true;
    park(s, &p->parked);
    return false;
}

/* The stream of thread m in this generation; or NULL. */
static struct gt_merge_stream *stream_of(uint32_t m)
{
    return work.by_m[slot_of(m)];
}

static void set_g(struct gt_merge_g *g, uint8_t state, uint32_t seq)
{
    g->state = state;
    g->seq = seq;
    g->gen = merge->gen;
}

static void set_p(struct gt_merge_stream *s, uint32_t id, bool busy, uint32_t seq)
{
    merge->proc[id].busy = busy;
    merge->proc[id].seq = seq;
    merge->proc[id].gen = merge->gen;
    if (busy)
        s->p = id;
    else if (s->p == id)
        s->p = GT_MERGE_NO_P;
}

/* Only in traces of Go programs: a thread takes the P of a thread that is in a call. */
static void steal_p(const struct gt_merge_event *ev)
{
    struct gt_merge_stream *victim = stream_of((uint32_t)ev->arg[2]);
    struct gt_merge_stream nobody = {.p = GT_MERGE_NO_P};
    set_p(victim ? victim : &nobody, (uint32_t)ev->arg[0], false, (uint32_t)ev->arg[1]);
}

static void go_status(struct gt_merge_stream *s, struct gt_merge_g *g)
{
    uint8_t state = (uint8_t)s->ev.arg[2];
    set_g(g, state, 0);
    if (state == GT_G_RUNNING || state == GT_G_SYSCALL)
        s->g = g;
}

/* The goroutine that the event is about. */
static struct gt_merge_g *subject(struct gt_merge_stream *s)
{
    switch (s->ev.type) {
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_SYSCALL:
    case GT_EV_GO_START:
    case GT_EV_GO_UNBLOCK:
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: return find_g(s->ev.arg[0]);
    default: return s->g;
    }
}

static bool is_about_g(enum gt_event_type type)
{
    return (type >= GT_EV_GO_CREATE && type <= GT_EV_GO_STATUS) || type == GT_EV_GO_STATUS_STACK ||
           type == GT_EV_GO_LABEL;
}

/* Changes the states of g and P as the event says. false: the event cannot happen now. */
static bool apply(struct gt_merge_stream *s, struct gt_merge_g *g)
{
    const struct gt_merge_event *ev = &s->ev;
    if (gt_event_args[ev->type] < 0 || (!g && is_about_g(ev->type)))
        return false;
    if (ev->added && (ev->type == GT_EV_PROC_START || ev->type == GT_EV_PROC_STOP))
        return true; /* the thread keeps the P of its writer */
    switch (ev->type) {
    case GT_EV_PROC_STATUS:
        if (ev->arg[0] >= GT_MERGE_NO_P)
            return false;
        set_p(s, (uint32_t)ev->arg[0], ev->arg[1] != GT_P_IDLE, 0);
        break;
    case GT_EV_PROC_STEAL:
        if (ev->arg[0] >= GT_MERGE_NO_P)
            return false;
        steal_p(ev);
        break;
    case GT_EV_PROC_START:
        if (ev->arg[0] >= GT_MERGE_NO_P)
            return false;
        set_p(s, (uint32_t)ev->arg[0], true, (uint32_t)ev->arg[1]);
        break;
    case GT_EV_PROC_STOP: set_p(s, s->p, false, merge->proc[s->p].seq); break;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: go_status(s, g); break;
    case GT_EV_GO_CREATE: set_g(g, GT_G_RUNNABLE, 0); break;
    case GT_EV_GO_CREATE_SYSCALL:
        set_g(g, GT_G_SYSCALL, 0);
        s->g = g;
        break;
    case GT_EV_GO_START:
        set_g(g, GT_G_RUNNING, ev->added ? g->seq : (uint32_t)ev->arg[1]);
        g->away = false;
        s->g = g;
        break;
    case GT_EV_GO_UNBLOCK:
        set_g(g, GT_G_RUNNABLE, ev->added ? g->seq : (uint32_t)ev->arg[1]);
        break;
    case GT_EV_GO_STOP:
    case GT_EV_GO_BLOCK:
        g->state = ev->type == GT_EV_GO_STOP ? GT_G_RUNNABLE : GT_G_WAITING;
        g->away = ev->added;
        s->g = NULL;
        break;
    case GT_EV_GO_SYSCALL_BEGIN:
        g->state = GT_G_SYSCALL;
        merge->proc[s->p].seq = (uint32_t)ev->arg[0];
        break;
    case GT_EV_GO_SYSCALL_END: g->state = GT_G_RUNNING; break;
    case GT_EV_GO_SYSCALL_END_BLOCKED:
        g->state = GT_G_RUNNABLE;
        s->g = NULL;
        break;
    case GT_EV_GO_DESTROY:
    case GT_EV_GO_DESTROY_SYSCALL: s->g = NULL; break;
    default: break;
    }
    return true;
}

/*
 * A goroutine starts on a thread without a P, because the event that gave the thread one is
 * missing: the thread gets one that no thread has, from the end that real ones do not reach.
 */
static void lend_p(struct gt_merge_stream *s)
{
    uint32_t p = GT_MERGE_NO_P - 1;
    while (p && merge->proc[p].busy)
        p--;
    set_p(s, p, true, 0);
    merge->mended++;
}

static bool step(struct gt_merge_stream *s, gt_merge_fn *fn)
{
    struct gt_merge_event *ev = &s->ev;
    if (lenient && ev->type == GT_EV_GO_START && s->p == GT_MERGE_NO_P)
        lend_p(s);
    uint32_t p = s->p;
    if (ev->type == GT_EV_GC_BEGIN) /* v1 readers tell it from the last GC's end by time alone */
        merge->last_ts++;
    if (ev->ts < merge->last_ts)
        ev->ts = merge->last_ts;
    merge->last_ts = ev->ts;
    ev->g = subject(s);
    ev->was = ev->g ? ev->g->state : GT_G_NONE;
    if (!apply(s, ev->g))
        return false;
    ev->p = ev->type == GT_EV_PROC_STOP ? p : s->p;
    fn(ev);
    if (ev->g)
        unpark(&ev->g->parked);
    if (ev->p != s->p)
        unpark(&merge->proc[ev->p].parked);
    unpark(&merge->proc[s->p].parked);
    if (ev->type == GT_EV_PROC_STATUS || ev->type == GT_EV_PROC_STEAL)
        unpark(&merge->proc[ev->arg[0]].parked);
    if (ev->type == GT_EV_GO_DESTROY || ev->type == GT_EV_GO_DESTROY_SYSCALL)
        forget_g(ev->g);
    return true;
}

static void go_on(struct gt_merge_stream *s)
{
    if (advance(s))
        push(s);
    else
        merge->unfinished--;
}

static bool run_ready(gt_merge_fn *fn)
{
    while (merge->queue.n) {
        struct gt_merge_stream *s = (void *)(uintptr_t)gt_queue_pop(&merge->queue);
        if (!ready(s))
            continue;
        if (!step(s, fn)) {
            if (!lenient)
                return false;
            merge->mended++;
        }
        go_on(s);
    }
    return true;
}

/* Contradictions ----------------------------------------------------------------------------- */

static void unpark_one(struct gt_merge_stream *s)
{
    uint64_t id = s->ev.arg[0];
    bool of_p = s->ev.type == GT_EV_PROC_START;
    struct gt_merge_stream **link = of_p ? &merge->proc[id].parked : &find_g(id)->parked;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    s->is_parked = false;
}

static struct gt_merge_stream *earliest_parked(void)
{
    struct gt_merge_stream *earliest = NULL;
    for (size_t i = 0; i < work.streams; i++) {
        struct gt_merge_stream *s = &work.stream[i];
        if (s->is_parked && (!earliest || s->ev.ts < earliest->ev.ts))
            earliest = s;
    }
    return earliest;
}

/* Takes the goroutine's start or unblock for the next thing that happens to it. */
static void count_on(struct gt_merge_g *g, const struct gt_merge_event *ev, bool has_happened)
{
    g->gen = merge->gen;
    g->seq = (uint32_t)ev->arg[1] - !has_happened;
    g->away = false;
}

/* A goroutine starts, but no event has ended its wait: adds an unblock. false: it runs already. */
static bool let_start(struct gt_merge_stream *s, struct gt_merge_g *g, gt_merge_fn *fn)
{
    struct gt_merge_event own = s->ev;
    if (g->state == GT_G_RUNNABLE)
        return true;
    if (g->state != GT_G_WAITING)
        return false;
    put(s, GT_EV_GO_UNBLOCK, own.ts, g->id, 0, 0);
    step(s, fn);
    s->ev = own;
    return true;
}

/*
 * Resolves a deadlock: all streams wait for events that no stream has. Drops s's next event if it
 * has happened already. If another thread has the goroutine or the P, drops the rest of the
 * stream.
 */
static void mend(struct gt_merge_stream *s, gt_merge_fn *fn)
{
    struct gt_merge_g *g = s->ev.type == GT_EV_PROC_START ? NULL : find_g(s->ev.arg[0]);
    bool starts = s->ev.type == GT_EV_GO_START;
    unpark_one(s);
    merge->mended++;
    bool happens = g && (starts ? let_start(s, g, fn) : g->state == GT_G_WAITING);
    if (!g || (!happens && starts && s->g != g)) {
        merge->unfinished--;
        return;
    }
    count_on(g, &s->ev, !happens);
    if (happens)
        push(s);
    else
        go_on(s);
    unpark(&g->parked);
}

static int run(gt_merge_fn *fn)
{
    while (run_ready(fn)) {
        if (!merge->unfinished)
            return 0;
        struct gt_merge_stream *s = lenient ? earliest_parked() : NULL;
        if (!s)
            return -EPROTO;
        mend(s, fn);
    }
    return -EPROTO;
}

/* Gathering ---------------------------------------------------------------------------------- */

static bool work_begin(size_t n)
{
    size_t buckets = 2;
    while (buckets < 2 * n)
        buckets *= 2;
    work.bytes = n * (sizeof *work.chunk + sizeof *work.stream + sizeof *merge->queue.at) +
                 buckets * sizeof *work.by_m;
    char *memory = gt_pages_alloc(work.bytes);
    if (!memory)
        return false;
    work.stream = (struct gt_merge_stream *)memory;
    work.chunk = (struct chunk *)(work.stream + n);
    merge->queue.at = (struct gt_pair *)(work.chunk + n);
    work.by_m = (struct gt_merge_stream **)(merge->queue.at + n);
    work.mask = buckets - 1;
    work.chunks = work.streams = merge->queue.n = 0;
    return true;
}

size_t gt_merge_streams(const struct gt_buf *packed, const struct gt_buf *plain)
{
    return gt_strands_each(packed, plain, NULL);
}

static void add_chunk(const struct gt_strand *strand)
{
    size_t i = slot_of(strand->m);
    struct chunk *mine = &work.chunk[work.chunks++];
    *mine = (struct chunk){.strand = *strand};
    if (work.by_m[i]) {
        work.by_m[i]->last = work.by_m[i]->last->next = mine;
    } else {
        work.by_m[i] = &work.stream[work.streams++];
        *work.by_m[i] = (struct gt_merge_stream){.chunk = mine, .last = mine, .p = GT_MERGE_NO_P};
    }
}

static struct absent absences_of(gt_absences_fn *absences, uint32_t m)
{
    size_t n = 0;
    const struct gt_absence *first = absences ? absences(m, &n) : NULL;
    return (struct absent){.next = first, .end = first + n};
}

int gt_merge(struct gt_merge *which, uint32_t gen, const struct gt_buf *packed,
             const struct gt_buf *plain, gt_absences_fn *absences, gt_merge_fn *fn)
{
    merge = which;
    size_t n = gt_strands_each(packed, plain, NULL);
    if (!n || merge->error)
        return merge->error;
    if (!work_begin(n))
        return merge->error = -ENOMEM;
    merge->used = true;
    merge->gen = gen;
    gt_strands_each(packed, plain, add_chunk);
    merge->unfinished = 0;
    for (size_t i = 0; i < work.streams; i++) {
        work.stream[i].absent = absences_of(absences, work.stream[i].last->strand.m);
        if (advance(&work.stream[i])) {
            merge->unfinished++;
            push(&work.stream[i]);
        }
    }
    merge->error = run(fn);
    gt_pages_free(work.stream, work.bytes);
    return merge->error;
}

uint64_t gt_merge_time(const struct gt_merge *which)
{
    return which->last_ts;
}

void gt_merge_move_on(struct gt_merge *which, uint64_t ts)
{
    which->last_ts = ts > which->last_ts ? ts : which->last_ts;
}

struct gt_merge_g *gt_merge_goroutine(struct gt_merge *which, uint64_t id)
{
    merge = which;
    merge->used = true;
    return find_g(id);
}
