/* See why_replay.h. */
#include "why_replay.h"

#include "encoder/base/queue.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* What threads do ----------------------------------------------------------------------------- */

enum op_type {
    WORK,    /* a stretch of a section; ns: how long */
    COMPUTE, /* the same on a CPU */
    DELAY,   /* the same, of a thread that was woken: not where it had nothing to wait for */
    AWAIT,   /* until an edge is there */
    POST,    /* an edge is there now */
    ACQUIRE, /* a lock */
    PASS,    /* the same, to give it up at once */
    RELEASE,
};

struct op {
    uint32_t type : 4, held : 1, arg : 27; /* arg: section, edge or lock; held: with a lock */
    uint32_t spare;
    uint64_t ns; /* of AWAIT and ACQUIRE: when it was over */
};

/* The end of a wait, on the thread that ended it; or the beginning of a thread on its creator's. */
struct edge {
    uint64_t at;
    uint32_t by, waiter;
};

struct lane {
    struct op *op;
    size_t n, room;
    size_t first_edge, edges; /* that it posts: of gt_replay.edge */
    /* While it runs: */
    size_t next;
    bool waited, done, blocked;
    bool retries;         /* it was woken for a lock, and looks again */
    uint32_t next_waiter; /* for the same lock, or GT_NOBODY */
};

struct gt_replay {
    struct gt_sections *sections;
    uint32_t target;
    uint64_t from, to;
    struct lane *lane;
    size_t lanes;
    struct edge *edge;
    size_t edges, edges_room;
    struct gt_hold *hold; /* of all threads, by lock */
    size_t holds;
    double cpus;
    bool counted; /* which part of running was on a CPU tells the account alone */
};

static struct op *add_op(struct lane *lane, enum op_type type, uint32_t arg, uint64_t ns)
{
    lane->op = gt_need_room(lane->op, lane->n, &lane->room, sizeof *lane->op);
    lane->op[lane->n] = (struct op){.type = type, .arg = arg & ((1u << 27) - 1), .ns = ns};
    return &lane->op[lane->n++];
}

/* Building ------------------------------------------------------------------------------------ */

enum {
    TAKEN_NS = 50000, /* from going on with a lock to the note that it was taken, at most */
    WAKE_NS = 50000,  /* a delay of a wake-up that is no lack of CPUs */
};

struct builder {
    struct gt_replay *replay;
    uint32_t thread;
    struct lane *lane;
    size_t next_edge, next_hold;
    bool *acquired;    /* by hold */
    size_t first_hold; /* which that begins with */
    uint64_t until;    /* of what has been added */
    bool skip_delay;   /* of a wake-up in vain: there will be others, or none */
    uint32_t lock;     /* that the last wait was for, or GT_NOBODY */
    bool woken;        /* by another thread, just before */
    struct gt_cursor ahead;
};

static const struct gt_lane *lane_of(const struct gt_replay *r, uint32_t thread)
{
    return &r->sections->graph->lane[thread];
}

/* Holds of each lock by any thread, in the order of time. */
static int by_lock_and_end(const void *a, const void *b)
{
    const struct gt_hold *x = a, *y = b;
    if (x->lock != y->lock)
        return x->lock < y->lock ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void find_holds(struct gt_replay *r)
{
    size_t n = 0;
    for (uint32_t i = 0; i < r->lanes; i++)
        n += lane_of(r, i)->holds;
    r->hold = gt_need(malloc((n + 1) * sizeof *r->hold));
    for (uint32_t i = 0; i < r->lanes; i++) {
        const struct gt_lane *lane = lane_of(r, i);
        for (size_t k = gt_lane_hold_after(lane, r->from); k < lane->holds; k++) {
            if (lane->hold[k].from < r->to)
                r->hold[r->holds++] = lane->hold[k];
        }
    }
    if (r->holds)
        qsort(r->hold, r->holds, sizeof *r->hold, by_lock_and_end);
}

/* How much of that time it is told that somebody had the lock. */
static uint64_t held_between(const struct gt_replay *r, uint32_t lock, uint64_t from, uint64_t to)
{
    size_t low = 0, high = r->holds;
    uint64_t sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gt_hold *h = &r->hold[middle];
        if (h->lock < lock || (h->lock == lock && h->to <= from))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < r->holds && r->hold[low].lock == lock && from < to; low++) {
        const struct gt_hold *h = &r->hold[low];
        uint64_t begin = h->from > from ? h->from : from, end = h->to < to ? h->to : to;
        if (begin < end) {
            sum += end - begin;
            from = end;
        }
        if (h->from >= to)
            break;
    }
    return sum;
}

/* Whether the wait is one for holds that are told: the lock itself says when it is over. */
static bool is_of_lock(const struct gt_replay *r, const struct gt_step *s)
{
    return gt_graph_is_lock_wait(r->sections->graph, s) &&
           held_between(r, s->lock, 0, UINT64_MAX) > 0;
}

static void add_edge(struct gt_replay *r, uint64_t at, uint32_t by, uint32_t waiter)
{
    if (at <= r->from || at > r->to)
        return;
    r->edge = gt_need_room(r->edge, r->edges, &r->edges_room, sizeof *r->edge);
    r->edge[r->edges++] = (struct edge){at, by, waiter};
}

static int by_poster(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->by != y->by)
        return x->by < y->by ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->waiter < y->waiter ? -1 : x->waiter > y->waiter;
}

/* The thread's first step in the interval. */
static const struct gt_step *first_step(struct gt_cursor *c, const struct gt_replay *r)
{
    const struct gt_lane *lane = lane_of(r, c->thread);
    if (r->from > lane->begin && lane->steps)
        return gt_cursor_seek(c, r->from + 1);
    return gt_cursor_next(c);
}

static void find_edges(struct gt_replay *r)
{
    for (uint32_t i = 0; i < r->lanes; i++) {
        const struct gt_lane *lane = lane_of(r, i);
        const struct gt_thread_state *maker = lane->thread->maker;
        struct gt_cursor c = {.graph = r->sections->graph, .thread = i};
        if (maker && lane->begin > r->from)
            add_edge(r, lane->begin, maker->number, i);
        for (const struct gt_step *s = first_step(&c, r); s && s->from < r->to;
             s = gt_cursor_next(&c)) {
            if (s->by != GT_NOBODY && !is_of_lock(r, s))
                add_edge(r, s->to, s->by, i);
        }
        gt_cursor_close(&c);
    }
    if (r->edges)
        qsort(r->edge, r->edges, sizeof *r->edge, by_poster);
    for (size_t i = 0; i < r->edges; i++) {
        struct lane *lane = &r->lane[r->edge[i].by];
        lane->first_edge = lane->edges ? lane->first_edge : i;
        lane->edges++;
    }
}

/* The edge that such a wait of the thread waits for. */
static size_t edge_of(const struct gt_replay *r, uint32_t waiter, uint64_t at, uint32_t by)
{
    struct edge key = {at, by, waiter};
    const struct edge *found = bsearch(&key, r->edge, r->edges, sizeof key, by_poster);
    return found ? (size_t)(found - r->edge) : SIZE_MAX;
}

static const struct gt_hold *next_hold(const struct builder *b)
{
    const struct gt_lane *lane = lane_of(b->replay, b->thread);
    return b->next_hold < lane->holds ? &lane->hold[b->next_hold] : NULL;
}

enum { HOLDS_AT_ONCE = 8 };

/* What the beginning of a hold may be off: it is told as a length, to a hundredth of its unit. */
static uint64_t slack_of(const struct gt_hold *h)
{
    uint64_t ns = h->to - h->from;
    return 2000 + (ns >= 1000000000 ? 10000000 : ns >= 1000000 ? 10000 : 0);
}

/*
 * The thread asks for a lock at that time; before, for those that it has then and gives up later.
 * Taken the other way round they would be in a circle with another thread's.
 */
static void take(struct builder *b, size_t hold, uint64_t at)
{
    const struct gt_lane *lane = lane_of(b->replay, b->thread);
    const struct gt_hold *it = &lane->hold[hold];
    for (size_t i = lane->holds < hold + HOLDS_AT_ONCE ? lane->holds : hold + HOLDS_AT_ONCE;
         i-- > hold + 1;) {
        const struct gt_hold *outer = &lane->hold[i];
        bool *acquired = &b->acquired[i - b->first_hold];
        if (*acquired || outer->to < it->to || outer->from > at + slack_of(outer))
            continue;
        *acquired = true;
        add_op(b->lane, ACQUIRE, outer->lock, outer->from);
    }
    b->acquired[hold - b->first_hold] = true;
    add_op(b->lane, ACQUIRE, it->lock, it->from);
}

/* What happens on the thread at a moment, up to that time: it lets others go on, takes and gives.
 */
static void add_moments(struct builder *b, uint64_t until)
{
    struct gt_replay *r = b->replay;
    const struct gt_lane *lane = lane_of(r, b->thread);
    for (;;) {
        const struct edge *e =
            b->next_edge < b->lane->edges ? &r->edge[b->lane->first_edge + b->next_edge] : NULL;
        const struct gt_hold *h = next_hold(b);
        bool edge_first = e && (!h || e->at < h->to);
        if (edge_first && e->at <= until) {
            add_op(b->lane, POST, (uint32_t)(b->lane->first_edge + b->next_edge++), 0);
        } else if (!edge_first && h && h->to <= until) {
            if (b->acquired[b->next_hold - b->first_hold])
                add_op(b->lane, RELEASE, h->lock, 0);
            b->next_hold++;
        } else {
            break;
        }
    }
    for (size_t i = b->next_hold; i < lane->holds && i < b->next_hold + HOLDS_AT_ONCE; i++) {
        if (lane->hold[i].from <= until && !b->acquired[i - b->first_hold])
            take(b, i, lane->hold[i].from);
    }
}

/* When the next of these comes, if that is before `to`. */
static uint64_t next_moment(const struct builder *b, uint64_t to)
{
    const struct gt_replay *r = b->replay;
    const struct gt_lane *lane = lane_of(r, b->thread);
    if (b->next_edge < b->lane->edges) {
        uint64_t at = r->edge[b->lane->first_edge + b->next_edge].at;
        to = at < to ? at : to;
    }
    for (size_t i = b->next_hold; i < lane->holds && i < b->next_hold + HOLDS_AT_ONCE; i++) {
        const struct gt_hold *h = &lane->hold[i];
        uint64_t at = b->acquired[i - b->first_hold] ? h->to : h->from;
        to = at < to ? at : to;
    }
    return to;
}

/* How much of its running a thread had a CPU, by its account. */
static double cpu_share(const struct gt_thread_state *t)
{
    uint64_t cpu = t->shares.cpu, all = cpu + t->shares.queue;
    return all ? (double)cpu / (double)all : 1;
}

static void add_work(void *arg, const struct gt_part *part)
{
    struct builder *b = arg;
    const struct gt_replay *r = b->replay;
    const struct gt_section *section = &r->sections->at[part->section];
    uint64_t ns = part->to - part->from;
    enum op_type type = WORK;
    if (section->kind == GT_RUNNING && r->cpus > 0) {
        type = COMPUTE;
        ns = r->counted ? (uint64_t)((double)ns * cpu_share(lane_of(r, b->thread)->thread)) : ns;
    }
    if (section->kind == GT_SCHED) {
        if (section->woken && b->skip_delay)
            return;
        /* In which others had the lock is no delay, but a wake-up in vain. */
        uint64_t vain = section->woken && b->lock != GT_NOBODY
                            ? held_between(r, b->lock, part->from, part->to)
                            : 0;
        ns = vain < ns ? ns - vain : 0;
        if (r->cpus > 0)
            ns = section->woken && ns > WAKE_NS ? WAKE_NS : section->woken ? ns : 0;
        type = section->woken && b->woken ? DELAY : WORK;
    }
    if (ns)
        add_op(b->lane, type, part->section, ns)->held = section->lock != GT_NOBODY;
}

static void add_stretch(struct builder *b, const struct gt_step *s, uint64_t from, uint64_t to)
{
    while (from < to) {
        add_moments(b, from);
        uint64_t until = next_moment(b, to);
        until = until > from ? until : from + 1;
        gt_sections_split(b->replay->sections, b->thread, s, from, until, add_work, b);
        from = until;
    }
}

/* When the thread went on that waited so for a lock: it may have been woken in vain before. */
static uint64_t had_it_by(struct builder *b, const struct gt_step *s)
{
    enum { LOOK_NS = 20000 };
    uint64_t end = s->to;
    uint32_t lock = s->lock;
    const struct gt_step *n = gt_cursor_seek(&b->ahead, end);
    while (n && (n = gt_cursor_next(&b->ahead))) {
        bool looks = n->kind == GT_RUNNING && n->to - n->from < LOOK_NS;
        bool again = n->kind == GT_SYNC && n->lock == lock;
        if (n->kind != GT_SCHED && !looks && !again)
            break;
        end = n->to;
    }
    return end;
}

/* The thread's own hold that this wait, or it and more of them, led to. */
static size_t hold_after(struct builder *b, const struct gt_step *s)
{
    const struct gt_lane *lane = lane_of(b->replay, b->thread);
    for (size_t i = b->next_hold; i < lane->holds && i < b->next_hold + HOLDS_AT_ONCE; i++) {
        const struct gt_hold *h = &lane->hold[i];
        if (h->lock != s->lock || h->to <= s->to)
            continue;
        uint64_t slack = slack_of(h);
        bool its = h->from + slack >= s->from && h->from <= had_it_by(b, s) + slack + TAKEN_NS;
        return its ? i : SIZE_MAX;
    }
    return SIZE_MAX;
}

static void add_wait(struct builder *b, const struct gt_step *s)
{
    struct gt_replay *r = b->replay;
    add_moments(b, s->from);
    bool of_lock = is_of_lock(r, s);
    size_t own = gt_graph_is_lock_wait(r->sections->graph, s) ? hold_after(b, s) : SIZE_MAX;
    if (!of_lock) {
        size_t edge = edge_of(r, b->thread, s->to, s->by);
        if (edge != SIZE_MAX)
            add_op(b->lane, AWAIT, (uint32_t)edge, s->to);
    }
    if (own != SIZE_MAX) {
        b->skip_delay = b->acquired[own - b->first_hold];
        if (!b->skip_delay)
            take(b, own, s->from);
    } else if (of_lock) {
        add_op(b->lane, PASS, s->lock, s->to);
    }
}

static void build_lane(struct gt_replay *r, uint32_t thread)
{
    const struct gt_lane *its = lane_of(r, thread);
    struct gt_cursor c = {.graph = r->sections->graph, .thread = thread};
    struct builder b = {
        .replay = r, .thread = thread, .lane = &r->lane[thread], .lock = GT_NOBODY, .ahead = c};
    b.next_hold = b.first_hold = its->holds ? gt_lane_hold_after(its, r->from) : 0;
    b.acquired = gt_need(calloc(its->holds - b.first_hold + 1, 1));
    if (its->thread->maker && its->begin > r->from) {
        size_t edge = edge_of(r, thread, its->begin, its->thread->maker->number);
        if (edge != SIZE_MAX)
            add_op(b.lane, AWAIT, (uint32_t)edge, its->begin);
        b.woken = edge != SIZE_MAX;
    }
    for (const struct gt_step *s = first_step(&c, r); s && s->from < r->to;
         s = gt_cursor_next(&c)) {
        uint64_t from = s->from > r->from ? s->from : r->from, to = s->to < r->to ? s->to : r->to;
        if (s->by != GT_NOBODY && s->to <= r->to)
            add_wait(&b, s);
        else
            add_stretch(&b, s, from, to);
        b.skip_delay = b.skip_delay && s->by != GT_NOBODY;
        b.lock = s->kind == GT_SYNC ? s->lock : GT_NOBODY;
        b.woken = s->by != GT_NOBODY;
        add_moments(&b, to);
    }
    add_moments(&b, r->to);
    for (; b.next_hold < its->holds && its->hold[b.next_hold].from < r->to; b.next_hold++) {
        if (b.acquired[b.next_hold - b.first_hold])
            add_op(b.lane, RELEASE, its->hold[b.next_hold].lock, 0);
    }
    free(b.acquired);
    gt_cursor_close(&b.ahead);
    gt_cursor_close(&c);
}

/* CPUs ---------------------------------------------------------------------------------------- */

struct moment {
    uint64_t at;
    int running, runnable;
};

static int by_moment(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

struct moments {
    struct moment *at;
    size_t n, room;
    uint64_t ran, delayed;
};

static void add_both_ends(struct moments *m, const struct gt_step *s, bool runs)
{
    for (int end = 0; end < 2; end++) {
        int by = end ? -1 : 1;
        m->at = gt_need_room(m->at, m->n, &m->room, sizeof *m->at);
        m->at[m->n++] = (struct moment){end ? s->to : s->from, runs ? by : 0, runs ? 0 : by};
    }
    *(runs ? &m->ran : &m->delayed) += s->to - s->from;
}

static struct moments find_moments(const struct gt_replay *r)
{
    struct moments m = {0};
    for (uint32_t i = 0; i < r->lanes; i++) {
        struct gt_cursor c = {.graph = r->sections->graph, .thread = i};
        for (const struct gt_step *s = first_step(&c, r); s && s->from < r->to;
             s = gt_cursor_next(&c)) {
            bool runs = s->kind == GT_RUNNING;
            if (runs || (s->kind == GT_SCHED && s->to - s->from > WAKE_NS))
                add_both_ends(&m, s, runs);
        }
        gt_cursor_close(&c);
    }
    if (m.n)
        qsort(m.at, m.n, sizeof *m.at, by_moment);
    return m;
}

/*
 * How many of the threads had a CPU while others had none, by the kernel's record, or while any
 * could run, by the account. 0: too few were delayed for it to matter.
 */
static double measure_cpus(struct gt_replay *r)
{
    enum { LEAST_PERCENT = 5, LEAST_COUNTED_PERCENT = 20 };
    const struct gt_threads *threads = &r->sections->graph->threads;
    uint64_t cpu = 0, queue = 0, crowded = 0;
    double busy = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        cpu += t->shares.cpu;
        queue += t->shares.queue;
    }
    r->counted = !threads->cpus && threads->accounts && queue * 100 > cpu * LEAST_COUNTED_PERCENT;
    struct moments m = find_moments(r);
    bool delayed = r->counted || (threads->cpus && m.delayed * 100 > m.ran * LEAST_PERCENT);
    int running = 0, runnable = 0;
    for (size_t i = 0; delayed && i + 1 < m.n; i++) {
        running += m.at[i].running;
        runnable += m.at[i].runnable;
        uint64_t ns = m.at[i + 1].at - m.at[i].at;
        bool counts = r->counted ? running > 0 : runnable > 0;
        crowded += counts ? ns : 0;
        busy += counts ? (double)ns * running : 0;
    }
    free(m.at);
    if (r->counted && m.ran)
        busy *= (double)cpu / (double)(cpu + queue);
    double had = crowded ? busy / (double)crowded : 0;
    double least = r->counted ? 1.5 : 0.7 * (double)threads->cpus;
    r->counted = r->counted && had >= least;
    return had >= least ? had : 0; /* less: other processes had them, and would again */
}

struct gt_replay *gt_replay_build(struct gt_sections *sections, uint32_t thread, uint64_t from,
                                  uint64_t to)
{
    struct gt_replay *r = gt_need(calloc(1, sizeof *r));
    *r = (struct gt_replay){.sections = sections, .target = thread, .from = from, .to = to};
    r->lanes = sections->graph->lanes;
    r->lane = gt_need(calloc(r->lanes + 1, sizeof *r->lane));
    r->cpus = measure_cpus(r);
    find_holds(r);
    find_edges(r);
    for (uint32_t i = 0; i < r->lanes; i++)
        build_lane(r, i);
    return r;
}

double gt_replay_cpus(const struct gt_replay *replay)
{
    return replay->cpus;
}

void gt_replay_free(struct gt_replay *r)
{
    for (size_t i = 0; i < r->lanes; i++)
        free(r->lane[i].op);
    free(r->lane);
    free(r->edge);
    free(r->hold);
    free(r);
}

/* Running ------------------------------------------------------------------------------------- */

struct lock {
    uint32_t owner, first, last; /* GT_NOBODY: none; those who wait for it, in order */
    bool waking;                 /* one was woken and has not looked yet */
};

struct run {
    struct gt_replay *replay;
    const struct gt_change *change;
    struct lock *lock;
    uint8_t *posted;                  /* by edge: 1 posted, 2 awaited */
    struct gt_queue timed, computing; /* by the time it is done; by work of each done then */
    double cpus, work;                /* work: that each thread on a CPU has done so far */
    uint64_t now;
    struct gt_outcome outcome;
};

static void wake(struct run *run, uint32_t thread, uint64_t delay)
{
    struct lane *lane = &run->replay->lane[thread];
    lane->blocked = false;
    lane->waited = true;
    gt_queue_push(&run->timed, (struct gt_pair){run->now + delay, thread});
}

/* What the thread needs from being woken to looking at the lock again. */
static uint64_t delay_of(const struct run *run, const struct lane *lane)
{
    const struct op *after = lane->next + 1 < lane->n ? &lane->op[lane->next + 1] : NULL;
    return after && after->type == DELAY && !run->change->cpus ? after->ns : 0;
}

/* As mutexes do: whoever comes first has it, and of those who wait one at a time is woken. */
static void release(struct run *run, struct lock *lock)
{
    lock->owner = GT_NOBODY;
    if (lock->first == GT_NOBODY || lock->waking)
        return;
    uint32_t thread = lock->first;
    struct lane *lane = &run->replay->lane[thread];
    lock->first = lane->next_waiter;
    lock->waking = lane->retries = true;
    wake(run, thread, delay_of(run, lane));
}

static void queue_up(struct run *run, struct lock *lock, uint32_t thread)
{
    struct lane *lane = &run->replay->lane[thread];
    lane->next_waiter = GT_NOBODY;
    if (lock->first == GT_NOBODY)
        lock->first = thread;
    else
        run->replay->lane[lock->last].next_waiter = thread;
    lock->last = thread;
    lane->blocked = true;
}

/* Whether the thread has it, or had; else it waits. */
static bool acquire(struct run *run, uint32_t thread, const struct op *op)
{
    struct lane *lane = &run->replay->lane[thread];
    struct lock *lock = &run->lock[op->arg];
    if (run->change->free_lock && run->change->lock == op->arg)
        return true;
    lock->waking &= !lane->retries;
    if (lock->owner != GT_NOBODY && lock->owner != thread) {
        lane->retries = false;
        queue_up(run, lock, thread);
        return false;
    }
    lane->waited = false; /* the delay is over */
    lane->retries = false;
    if (op->type == ACQUIRE)
        lock->owner = thread;
    else if (lock->owner == GT_NOBODY)
        release(run, lock);
    return true;
}

static bool await_edge(struct run *run, uint32_t thread, const struct op *op)
{
    struct lane *lane = &run->replay->lane[thread];
    if (run->posted[op->arg] == 1)
        return true;
    run->posted[op->arg] = 2;
    lane->blocked = true;
    return false;
}

static void post(struct run *run, uint32_t edge)
{
    bool awaited = run->posted[edge] == 2;
    run->posted[edge] = 1;
    if (awaited && run->replay->lane[run->replay->edge[edge].waiter].blocked)
        wake(run, run->replay->edge[edge].waiter, 0);
}

static uint64_t length(const struct run *run, uint32_t thread, const struct op *op)
{
    const struct gt_change *change = run->change;
    double part = change->section ? change->section[op->arg] : 1;
    part *= change->thread && !op->held ? change->thread[thread] : 1;
    if (run->replay->sections->at[op->arg].kind == GT_SCHED)
        part = change->cpus ? 0 : 1;
    return part == 1 ? op->ns : (uint64_t)((double)op->ns * part);
}

/* The thread does what takes no time, up to what does. */
static void go_on(struct run *run, uint32_t thread)
{
    struct lane *lane = &run->replay->lane[thread];
    while (lane->next < lane->n) {
        const struct op *op = &lane->op[lane->next];
        uint64_t ns;
        if ((op->type == ACQUIRE || op->type == PASS) && !acquire(run, thread, op))
            return;
        lane->next++;
        switch (op->type) {
        case DELAY:
            if (!lane->waited)
                break;
            __attribute__((fallthrough));
        case WORK:
            ns = length(run, thread, op);
            if (!ns)
                break;
            lane->waited = false;
            gt_queue_push(&run->timed, (struct gt_pair){run->now + ns, thread});
            return;
        case COMPUTE:
            ns = length(run, thread, op);
            if (!ns)
                break;
            lane->waited = false;
            gt_queue_push(&run->computing,
                          (struct gt_pair){(uint64_t)(run->work + (double)ns), thread});
            return;
        case POST: post(run, op->arg); break;
        case AWAIT:
            run->outcome.waits++;
            if (!await_edge(run, thread, op))
                return;
            break;
        case ACQUIRE:
        case PASS: run->outcome.waits++; break;
        case RELEASE:
            if (run->lock[op->arg].owner == thread)
                release(run, &run->lock[op->arg]);
            break;
        }
    }
    lane->done = true;
}

/* What the thread waits in. */
static const struct op *wait_of(const struct lane *lane)
{
    const struct op *next = lane->next < lane->n ? &lane->op[lane->next] : NULL;
    bool locks = next && (next->type == ACQUIRE || next->type == PASS);
    return locks ? next : &lane->op[lane->next - 1];
}

/* Nothing would end any wait: the one that was over first in truth is over. */
static bool force(struct run *run)
{
    struct gt_replay *r = run->replay;
    uint32_t found = GT_NOBODY;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < r->lanes; i++) {
        if (r->lane[i].blocked && wait_of(&r->lane[i])->ns < least) {
            least = wait_of(&r->lane[i])->ns;
            found = i;
        }
    }
    if (found == GT_NOBODY)
        return false;
    run->outcome.forced++;
    const struct op *op = wait_of(&r->lane[found]);
    if (op->type == AWAIT) {
        run->posted[op->arg] = 1;
        wake(run, found, 0);
        return true;
    }
    struct lock *lock = &run->lock[op->arg];
    lock->waking = false;
    release(run, lock); /* the first of those who wait has it: they are all in one circle */
    return true;
}

/* The thread whose stretch is over next, and `now` is when; false: none does anything. */
static bool next_thread(struct run *run, uint32_t *thread)
{
    double share = run->computing.n && run->cpus > 0 && (double)run->computing.n > run->cpus
                       ? run->cpus / (double)run->computing.n
                       : 1;
    uint64_t computed = UINT64_MAX;
    if (run->computing.n) {
        double left = (double)run->computing.at[0].key - run->work;
        computed = run->now + (uint64_t)(left > 0 ? left / share : 0);
    }
    bool timed = run->timed.n && run->timed.at[0].key <= computed;
    if (!timed && !run->computing.n)
        return false;
    uint64_t at = timed ? run->timed.at[0].key : computed;
    run->work += (double)(at - run->now) * share;
    run->now = at;
    *thread = (uint32_t)gt_queue_pop(timed ? &run->timed : &run->computing);
    return true;
}

static void prepare(struct run *run)
{
    struct gt_replay *r = run->replay;
    size_t locks = r->sections->graph->locks;
    run->lock = gt_need(malloc((locks + 1) * sizeof *run->lock));
    for (size_t i = 0; i < locks; i++)
        run->lock[i] = (struct lock){GT_NOBODY, GT_NOBODY, GT_NOBODY, false};
    run->posted = gt_need(calloc(r->edges + 1, 1));
    run->timed.at = gt_need(malloc((r->lanes + 1) * sizeof *run->timed.at));
    run->computing.at = gt_need(malloc((r->lanes + 1) * sizeof *run->computing.at));
    for (uint32_t i = 0; i < r->lanes; i++) {
        struct lane *lane = &r->lane[i];
        lane->next = 0;
        lane->waited = lane->done = lane->blocked = lane->retries = false;
        uint64_t begin = r->sections->graph->lane[i].begin;
        bool created = lane->n && lane->op[0].type == AWAIT && lane->op[0].ns == begin;
        run->now = begin > r->from && !created ? begin - r->from : 0;
        gt_queue_push(&run->timed, (struct gt_pair){run->now, i});
    }
    run->now = 0;
}

struct gt_outcome gt_replay_run(struct gt_replay *r, const struct gt_change *change)
{
    struct run run = {.replay = r, .change = change, .cpus = change->cpus ? 0 : r->cpus};
    uint32_t thread;
    prepare(&run);
    while (!r->lane[r->target].done) {
        if (next_thread(&run, &thread))
            go_on(&run, thread);
        else if (!force(&run))
            break;
    }
    run.outcome.ns = run.now;
    free(run.lock);
    free(run.posted);
    free(run.timed.at);
    free(run.computing.at);
    return run.outcome;
}
