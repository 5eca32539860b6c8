/*
 * See merge.h.
 *
 * Each thread is a stream. A heap holds the streams whose next event may be ready, earliest first.
 * One that turns out to have to wait for a goroutine or a P is parked there, and comes back when
 * something happens to that.
 */
#include "merge.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/queue.h"
#include "encoder/base/sparse.h"
#include "encoder/base/varint.h"
#include "encoder/texts.h"
#include "encoder/watch.h"

#include <errno.h>
#include <string.h>

#define BUCKETS 16384u

/* A P of the current trace. */
struct proc {
    struct gt_merge_stream *parked;
    uint32_t gen, seq;
    bool busy; /* a thread has it */
};

/* One batch. */
struct chunk {
    const uint8_t *pos, *end;
    uint64_t ts;
    uint32_t m;
    struct chunk *next; /* of the same thread */
};

struct gt_merge_stream {
    struct chunk *chunk, *last;
    struct gt_merge_event ev; /* the next one */
    struct gt_merge_g *g;     /* on the thread */
    uint32_t p;
    struct absent {
        const struct gt_absence *next, *end; /* those that have not begun */
        struct gt_absence now;
        enum { PRESENT, LEAVING, AWAY, BACK } at; /* LEAVING, BACK: the goroutine, not the thread */
        struct gt_merge_g *g;                     /* ran before; NULL: none, it waits or calls */
        struct gt_merge_event own;                /* the thread's next event; until its turn */
        bool has_own;
        uint64_t last;    /* time of its last one */
        uint64_t started; /* when the wait was over that the last one ended */
        uint64_t stack;   /* where the thread was seen last */
    } absent;
    struct gt_merge_stream *next; /* parked at the same place */
};

struct gt_merge {
    struct gt_merge_g *bucket[BUCKETS], *free;
    struct gt_arena arena;
    struct proc proc[GT_MERGE_NO_P + 1];
    uint64_t last_ts;

    uint32_t gen;
    struct gt_queue queue; /* of streams */
    size_t unfinished;
    bool used;
    int error; /* sticks: what follows a contradiction means nothing */
};

struct gt_merge gt_merge_for_v1 GT_SPARSE, gt_merge_for_sched GT_SPARSE;
static struct gt_merge *merge; /* of these, at work */

/* All memory of one call, sized for each batch being of another thread. */
static struct {
    size_t bytes, chunks, streams, mask;
    struct chunk *chunk;
    struct gt_merge_stream *stream, **by_m;
} work;

/* Goroutines --------------------------------------------------------------------------------- */

/* An entry without a state when it is heard of for the first time. */
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

static void forget_g(struct gt_merge_g *g)
{
    struct gt_merge_g **link = &merge->bucket[g->id % BUCKETS];
    while (*link != g)
        link = &(*link)->next;
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
    if (merge->used) /* else they are zero, and better not touched */
        memset(merge->proc, 0, sizeof merge->proc);
    merge->last_ts = 0;
    merge->error = 0;
}

/* The parent's drain side may have been anywhere. */
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

/* In work.by_m. */
static size_t slot_of(uint32_t m)
{
    size_t i = m * 0x9e3779b9u & work.mask;
    while (work.by_m[i] && work.by_m[i]->last->m != m)
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
    *where = s;
}

static void unpark(struct gt_merge_stream **where)
{
    while (*where) {
        struct gt_merge_stream *s = *where;
        *where = s->next;
        push(s);
    }
}

/* Decodes the thread's next event; false: that was the last one. */
static bool decode(struct gt_merge_stream *s, struct gt_merge_event *ev)
{
    while (s->chunk && s->chunk->pos == s->chunk->end)
        s->chunk = s->chunk->next;
    struct chunk *c = s->chunk;
    if (!c)
        return false;
    uint8_t type = *c->pos++;
    int args = type < GT_EVENTS_END ? gt_event_args[type] : -1;
    *ev = (struct gt_merge_event){.type = type,
                                  .m = c->m,
                                  .stream = (uint32_t)(s - work.stream),
                                  .ts = c->ts += gt_varint_get(&c->pos, c->end)};
    for (int i = 0; i < args; i++)
        ev->arg[i] = gt_varint_get(&c->pos, c->end);
    if (args < 0)
        c->pos = c->end; /* apply refuses it */
    return true;
}

/* Absences ----------------------------------------------------------------------------------- */

/* The clocks of events and of absences agree to that, and what lies between takes longer. */
enum { SLACK_NS = 300 };

static bool runs(const struct gt_merge_stream *s)
{
    return s->g && s->g->state == GT_G_RUNNING;
}

static void put(struct gt_merge_stream *s, enum gt_event_type type, uint64_t ts, uint64_t a,
                uint64_t b, uint64_t c)
{
    s->ev = (struct gt_merge_event){.type = type,
                                    .m = s->last->m,
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

/* The rest of a collection, which is written as a whole when it is over. */
static bool is_in_collection(enum gt_event_type type)
{
    return type == GT_EV_STW_BEGIN || type == GT_EV_STW_END || type == GT_EV_GC_END;
}

/* The thread loses its CPU before its next event. In a call or wait that is all that happens. */
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

/* The thread has a CPU again; or its next event says so, and the rest of the absence follows. */
static void arrive(struct gt_merge_stream *s, uint64_t ts, bool early)
{
    struct absent *a = &s->absent;
    a->last = ts > a->last ? ts : a->last;
    put(s, GT_EV_PROC_START, a->last, early ? GT_NO_CPU : a->now.cpu, 0, 0);
    a->next -= early;
}

/*
 * Its goroutine had run, and goes on. What was written for it meanwhile, behind its status, needs
 * it there for that moment.
 */
static void come_back(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    bool early = a->has_own && a->own.ts < a->now.to;
    arrive(s, early ? a->own.ts : a->now.to, early);
    a->at = BACK;
}

/*
 * Whether the thread wrote it later: events of a wait that went on in vain (struct gt_rewait), and
 * the end of one whose time was over (gt_writer.woken).
 */
static bool is_of_before(const struct gt_merge_stream *s)
{
    const struct gt_merge_event *own = &s->absent.own;
    return own->type == GT_EV_GO_START || (own->type == GT_EV_GO_UNBLOCK && !s->g) ||
           (own->type == GT_EV_GO_BLOCK && runs(s) && own->ts == s->absent.last);
}

/*
 * The thread has a CPU again, in a call or wait. Where that was the last time before its end, the
 * goroutine really started then.
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

/* A step of an absence, if that comes before the thread's next event. */
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

/* The generation begins, and the thread is not on a CPU. */
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
 * Its goroutine runs, by its own events. If it has no CPU, that is its status. But above all that
 * is what was told before, in case that the kernel's records say otherwise by now.
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

/* Where the thread was seen last, in this generation. */
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

/* What happens next in the stream; false: nothing more. */
static bool advance(struct gt_merge_stream *s)
{
    struct absent *a = &s->absent;
    if (!a->has_own) {
        a->has_own = decode(s, &a->own);
        if (a->started && a->own.type == GT_EV_GO_START) /* behind its own unblock */
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
        (g->gen == merge->gen && g->seq + 1 == s->ev.arg[1] && g->state == state && !g->away))
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
    if (!p->busy && p->gen == merge->gen && p->seq + 1 == s->ev.arg[1])
        return true;
    park(s, &p->parked);
    return false;
}

/* The thread's, in this generation; or NULL. */
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

/* Go's alone: a thread takes the P that another one has in a call. */
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
    return type >= GT_EV_GO_CREATE && (type <= GT_EV_GO_STATUS || type == GT_EV_GO_STATUS_STACK);
}

/* What the event changes. false: it cannot be. */
static bool apply(struct gt_merge_stream *s, struct gt_merge_g *g)
{
    const struct gt_merge_event *ev = &s->ev;
    if (gt_event_args[ev->type] < 0 || (!g && is_about_g(ev->type)))
        return false;
    if (ev->added && (ev->type == GT_EV_PROC_START || ev->type == GT_EV_PROC_STOP))
        return true; /* what its writers call Ps stays with the thread */
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

static bool step(struct gt_merge_stream *s, gt_merge_fn *fn)
{
    struct gt_merge_event *ev = &s->ev;
    uint32_t p = s->p;
    if (ev->type == GT_EV_GC_BEGIN) /* by time alone v1 readers tell it from the end before */
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

static int run(gt_merge_fn *fn)
{
    while (merge->queue.n) {
        struct gt_merge_stream *s = (void *)(uintptr_t)gt_queue_pop(&merge->queue);
        if (!ready(s))
            continue;
        if (!step(s, fn))
            return -EPROTO;
        gt_watch_meanwhile();
        if (advance(s))
            push(s);
        else
            merge->unfinished--;
    }
    return merge->unfinished ? -EPROTO : 0;
}

/* Gathering ---------------------------------------------------------------------------------- */

/* Calls fn for each batch; returns how many there are. */
static size_t each_chunk(const struct gt_buf *packed, const struct gt_buf *plain,
                         void (*fn)(const struct chunk *c))
{
    size_t n = 0;
    for (; packed; packed = packed->next) {
        struct chunk all = {.pos = packed->data, .end = packed->data + packed->used};
        for (; all.pos < all.end; n++) {
            all.pos++; /* EventBatch */
            gt_varint_get(&all.pos, all.end);
            struct chunk c = {.m = (uint32_t)gt_varint_get(&all.pos, all.end)};
            c.ts = gt_varint_get(&all.pos, all.end);
            uint64_t size = gt_varint_get(&all.pos, all.end);
            c.pos = all.pos;
            c.end = all.pos += size;
            if (fn)
                fn(&c);
        }
    }
    for (; plain; plain = plain->next) {
        struct chunk c = {plain->data, plain->data + plain->used, plain->ts, plain->m, NULL};
        if (gt_texts_in(plain))
            continue;
        n++;
        if (fn)
            fn(&c);
    }
    return n;
}

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
    return each_chunk(packed, plain, NULL);
}

static void add_chunk(const struct chunk *c)
{
    size_t i = slot_of(c->m);
    struct chunk *mine = &work.chunk[work.chunks++];
    *mine = *c;
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
    size_t n = each_chunk(packed, plain, NULL);
    if (!n || merge->error)
        return merge->error;
    if (!work_begin(n))
        return merge->error = -ENOMEM;
    merge->used = true;
    merge->gen = gen;
    each_chunk(packed, plain, add_chunk);
    merge->unfinished = 0;
    for (size_t i = 0; i < work.streams; i++) {
        work.stream[i].absent = absences_of(absences, work.stream[i].last->m);
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
