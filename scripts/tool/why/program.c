/* See program.h. */
#include "program.h"

#include "cpu_use.h"
#include "joins.h"
#include "slots.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

static struct gt_op *add_op(struct gt_thread_role *role, enum gt_op_type type, uint32_t arg,
                            uint64_t ns)
{
    struct gt_op *op = GT_ADD(role->op, role->n);
    *op = gt_op_make(type, arg, ns);
    return op;
}

enum {
    TAKEN_NS = 50000, /* at most so long from going on with a lock to its recorded hold */
};

struct builder {
    struct gt_program *program;
    uint32_t thread;
    struct gt_thread_role *role;
    size_t next_edge, next_hold;
    const struct gt_silent *next_silent;
    bool *acquired;    /* by hold */
    size_t first_hold; /* index of the hold that `acquired` begins with */
    uint64_t until;    /* end of what has been added */
    bool skip_delay;   /* the wake-up was spurious: the replay has others, or none */
    uint32_t lock;     /* the last wait was for this lock, or GT_NOBODY */
    bool woken;        /* by another thread, just before */
    bool open; /* the end of the trace cuts the work that is added: nothing makes it shorter */
    struct gt_cursor ahead;
};

static const struct gt_lane *lane_of(const struct gt_program *p, uint32_t thread)
{
    return &p->sections->graph->lane[thread];
}

/* Sorts holds by lock, then by time. */
GT_ORDER(by_lock_and_end, struct gt_lock_hold, GT_UP(lock) ?: GT_UP(to))

static void find_holds(struct gt_program *p)
{
    size_t n = 0;
    for (uint32_t i = 0; i < p->roles; i++)
        n += lane_of(p, i)->holds;
    p->hold = gt_need(malloc((n + 1) * sizeof *p->hold));
    p->held = gt_need(calloc(p->sections->graph->locks + 1, sizeof *p->held));
    for (uint32_t i = 0; i < p->roles; i++) {
        const struct gt_lane *lane = lane_of(p, i);
        for (size_t k = gt_lane_hold_after(lane, p->from); k < lane->holds; k++) {
            if (lane->hold[k].from >= p->to)
                continue;
            p->hold[p->holds++] = lane->hold[k];
            p->held[lane->hold[k].lock] = true;
        }
    }
    if (p->holds)
        qsort(p->hold, p->holds, sizeof *p->hold, by_lock_and_end);
}

/* How long the lock had a known holder in that time. */
static uint64_t held_between(const struct gt_program *p, uint32_t lock, uint64_t from, uint64_t to)
{
    size_t low = 0, high = p->holds;
    uint64_t sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gt_lock_hold *h = &p->hold[middle];
        if (h->lock < lock || (h->lock == lock && h->to <= from))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->holds && p->hold[low].lock == lock && from < to; low++) {
        const struct gt_lock_hold *h = &p->hold[low];
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

/*
 * A wait that events tell is over when the thread that ended it comes to that point. So is one for
 * a static, which is initialised once: its waiters do not take its guard in turn.
 */
static bool is_lock_wait(const struct gt_program *p, const struct gt_lane_step *s)
{
    const struct gt_graph *graph = p->sections->graph;
    return !s->told && !graph->spot[s->spot].once && gt_graph_is_lock_wait(graph, s);
}

/* Whether the wait is for a lock whose holds are recorded: the holds say when it is over. */
static bool is_of_lock(const struct gt_program *p, const struct gt_lane_step *s)
{
    return is_lock_wait(p, s) && p->held[s->lock];
}

/*
 * Whether the wait is for the rest of a thread that was told to stop. It then lasts as long as that
 * rest, whatever the thread did before.
 */
static bool is_rest(const struct gt_program *p, const struct gt_lane_step *s)
{
    return !is_of_lock(p, s) && gt_joins_is_rest(p->sections->graph, s);
}

static void add_edge(struct gt_program *p, struct gt_edge edge)
{
    if (edge.at <= p->from || edge.at > p->to)
        return;
    *GT_ADD(p->edge, p->edges) = edge;
}

GT_ORDER(by_poster, struct gt_edge, GT_UP(by) ?: GT_UP(at) ?: GT_UP(waiter))

/* Whether a thread joined this one in the interval without having to wait. */
static bool is_silent(const struct gt_program *p, const struct gt_lane *lane)
{
    return lane->joined > p->from && lane->joined <= p->to;
}

static void find_edges(struct gt_program *p)
{
    for (uint32_t i = 0; i < p->roles; i++) {
        const struct gt_lane *lane = lane_of(p, i);
        const struct gt_thread_state *maker = lane->thread->maker;
        if (lane->creator != GT_NOBODY && lane->begin > p->from)
            add_edge(p, (struct gt_edge){.at = lane->begin,
                                         .since = lane->begin,
                                         .by = lane->creator,
                                         .waiter = i,
                                         .lock = GT_NOBODY});
        if (is_silent(p, lane))
            add_edge(p, (struct gt_edge){.at = lane->until,
                                         .since = lane->until,
                                         .by = i,
                                         .waiter = maker->number,
                                         .lock = GT_NOBODY});
        GT_EACH_STEP_IN(s, p->sections->graph, i, p->from, p->to) {
            if (s->by != GT_NOBODY && !is_of_lock(p, s) && !is_rest(p, s))
                add_edge(p, (struct gt_edge){s->to, s->from, s->by, i,
                                             s->told ? GT_NOBODY : s->lock, s->spot});
        }
    }
    for (size_t i = 0; i < p->sections->graph->questions; i++) {
        const struct gt_question *q = &p->sections->graph->question[i];
        add_edge(p, (struct gt_edge){q->at, q->at, q->by, q->reader, GT_NOBODY, 0});
    }
    if (p->edges)
        qsort(p->edge, p->edges, sizeof *p->edge, by_poster);
    for (size_t i = 0; i < p->edges; i++) {
        struct gt_thread_role *role = &p->role[p->edge[i].by];
        role->first_edge = role->edges ? role->first_edge : i;
        role->edges++;
    }
}

/* The edge that ends the wait of `waiter`, by its time and waker; SIZE_MAX: none. */
static size_t edge_of(const struct gt_program *p, uint32_t waiter, uint64_t at, uint32_t by)
{
    struct gt_edge key = {.at = at, .by = by, .waiter = waiter};
    const struct gt_edge *found =
        p->edges ? bsearch(&key, p->edge, p->edges, sizeof key, by_poster) : NULL;
    return found ? (size_t)(found - p->edge) : SIZE_MAX;
}

GT_ORDER(by_waiter, struct gt_silent, GT_UP(waiter) ?: GT_UP(at))

/* at: when the waiter went on. */
static void add_silent_edge(struct gt_program *p, uint32_t waiter, uint32_t by, uint64_t posted,
                            uint64_t at)
{
    size_t edge = edge_of(p, waiter, posted, by);
    if (edge != SIZE_MAX)
        p->silent[p->silents++] = (struct gt_silent){waiter, (uint32_t)edge, at};
}

static void find_silent(struct gt_program *p)
{
    const struct gt_graph *graph = p->sections->graph;
    p->silent = gt_need(malloc((p->roles + graph->questions + 1) * sizeof *p->silent));
    for (uint32_t i = 0; i < p->roles; i++) {
        const struct gt_lane *lane = lane_of(p, i);
        if (is_silent(p, lane))
            add_silent_edge(p, lane->thread->maker->number, i, lane->until, lane->joined);
    }
    for (size_t i = 0; i < graph->questions; i++) {
        const struct gt_question *q = &graph->question[i];
        add_silent_edge(p, q->reader, q->by, q->at, q->at);
    }
    if (p->silents)
        qsort(p->silent, p->silents, sizeof *p->silent, by_waiter);
}

/* The first gt_silent of the thread. */
static const struct gt_silent *silent_of(const struct gt_program *p, uint32_t thread)
{
    const struct gt_silent *low = p->silent, *high = p->silent + p->silents;
    while (low < high) {
        const struct gt_silent *middle = low + (high - low) / 2;
        if (middle->waiter < thread)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct gt_lock_hold *next_hold(const struct builder *b)
{
    const struct gt_lane *lane = lane_of(b->program, b->thread);
    return b->next_hold < lane->holds ? &lane->hold[b->next_hold] : NULL;
}

enum { HOLDS_AT_ONCE = 8 };

/*
 * The thread asks for the lock of `hold` at `at`, and before that for outer locks that it holds
 * then and releases later. In the other order it would wait in a circle with another thread.
 */
static void take(struct builder *b, size_t hold, uint64_t at)
{
    const struct gt_lane *lane = lane_of(b->program, b->thread);
    const struct gt_lock_hold *it = &lane->hold[hold];
    for (size_t i = lane->holds < hold + HOLDS_AT_ONCE ? lane->holds : hold + HOLDS_AT_ONCE;
         i-- > hold + 1;) {
        const struct gt_lock_hold *outer = &lane->hold[i];
        bool *acquired = &b->acquired[i - b->first_hold];
        if (*acquired || outer->to < it->to || outer->from > at + gt_hold_slack(outer))
            continue;
        *acquired = true;
        add_op(b->role, GT_OP_ACQUIRE, outer->lock, outer->from);
    }
    b->acquired[hold - b->first_hold] = true;
    add_op(b->role, GT_OP_ACQUIRE, it->lock, it->from);
}

/* Adds what takes no time, up to `until`: posts, locks taken and locks released. */
static void add_moments(struct builder *b, uint64_t until)
{
    struct gt_program *p = b->program;
    const struct gt_lane *lane = lane_of(p, b->thread);
    for (;;) {
        const struct gt_edge *e =
            b->next_edge < b->role->edges ? &p->edge[b->role->first_edge + b->next_edge] : NULL;
        const struct gt_lock_hold *h = next_hold(b);
        bool edge_first = e && (!h || e->at < h->to);
        if (edge_first && e->at <= until) {
            add_op(b->role, GT_OP_POST, (uint32_t)(b->role->first_edge + b->next_edge++), 0);
        } else if (!edge_first && h && h->to <= until) {
            if (b->acquired[b->next_hold - b->first_hold])
                add_op(b->role, GT_OP_RELEASE, h->lock, 0);
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

/* When the next post, lock or unlock comes, if before `to`; else `to`. */
static uint64_t next_moment(const struct builder *b, uint64_t to)
{
    const struct gt_program *p = b->program;
    const struct gt_lane *lane = lane_of(p, b->thread);
    if (b->next_edge < b->role->edges) {
        uint64_t at = p->edge[b->role->first_edge + b->next_edge].at;
        to = at < to ? at : to;
    }
    for (size_t i = b->next_hold; i < lane->holds && i < b->next_hold + HOLDS_AT_ONCE; i++) {
        const struct gt_lock_hold *h = &lane->hold[i];
        uint64_t at = b->acquired[i - b->first_hold] ? h->to : h->from;
        to = at < to ? at : to;
    }
    return to;
}

static void add_work(void *arg, const struct gt_section_part *part)
{
    struct builder *b = arg;
    const struct gt_program *p = b->program;
    const struct gt_section *section = &p->sections->at[part->section];
    uint64_t ns = part->to - part->from;
    enum gt_op_type type = GT_OP_WORK;
    if (section->kind == GT_RUNNING && p->cpus > 0)
        type = GT_OP_COMPUTE;
    if (section->kind == GT_SCHED) {
        if (section->woken && b->skip_delay)
            return;
        /*
         * A delay in which another thread held the lock was a spurious wake-up, not a wait for a
         * CPU.
         */
        uint64_t vain = section->woken && b->lock != GT_NOBODY
                            ? held_between(p, b->lock, part->from, part->to)
                            : 0;
        ns = vain < ns ? ns - vain : 0;
        if (p->cpus > 0)
            ns = section->woken && ns > GT_USUAL_WAKE_NS ? GT_USUAL_WAKE_NS
                 : section->woken                        ? ns
                                                         : 0;
        type = section->woken && b->woken ? GT_OP_DELAY : GT_OP_WORK;
    }
    if (ns)
        add_op(b->role, type, b->open ? p->sections->unknown : part->section, ns)->held =
            section->lock != GT_NOBODY || gt_lane_initialises(lane_of(p, b->thread), part->from);
}

static void add_stretch(struct builder *b, const struct gt_lane_step *s, uint64_t from, uint64_t to)
{
    b->open = gt_step_is_open(s);
    while (from < to) {
        add_moments(b, from);
        uint64_t until = next_moment(b, to);
        until = until > from ? until : from + 1;
        gt_sections_split(b->program->sections, b->thread, s, from, until, add_work, b);
        from = until;
    }
}

/* When the waiter went on with the lock. Earlier wake-ups may have come before the lock was free.
 */
static uint64_t had_it_by(struct builder *b, const struct gt_lane_step *s)
{
    enum { LOOK_NS = 20000 };
    uint64_t end = s->to;
    uint32_t lock = s->lock, spot = s->spot;
    const struct gt_lane_step *n = gt_cursor_seek(&b->ahead, end);
    while (n && (n = gt_cursor_next(&b->ahead))) {
        bool looks = n->kind == GT_RUNNING && n->to - n->from < LOOK_NS;
        bool again = n->kind == GT_SYNC && n->lock == lock;
        bool ends = n->kind == GT_UNSEEN && n->spot == spot; /* gt_handed.unseen */
        if (n->kind != GT_SCHED && !looks && !again && !ends)
            break;
        end = n->to;
    }
    return end;
}

/* The thread's hold that this wait led to, alone or with more waits. SIZE_MAX: none. */
static size_t hold_after(struct builder *b, const struct gt_lane_step *s)
{
    const struct gt_lane *lane = lane_of(b->program, b->thread);
    for (size_t i = b->next_hold; i < lane->holds && i < b->next_hold + HOLDS_AT_ONCE; i++) {
        const struct gt_lock_hold *h = &lane->hold[i];
        if (h->lock != s->lock || h->to <= s->to)
            continue;
        uint64_t slack = gt_hold_slack(h);
        bool its = h->from + slack >= s->from && h->from <= had_it_by(b, s) + slack + TAKEN_NS;
        return its ? i : SIZE_MAX;
    }
    return SIZE_MAX;
}

static void add_wait(struct builder *b, const struct gt_lane_step *s)
{
    struct gt_program *p = b->program;
    add_moments(b, s->from);
    bool of_lock = is_of_lock(p, s);
    size_t own = is_lock_wait(p, s) ? hold_after(b, s) : SIZE_MAX;
    if (!of_lock) {
        size_t edge = edge_of(p, b->thread, s->to, s->by);
        if (edge != SIZE_MAX)
            add_op(b->role, GT_OP_AWAIT, (uint32_t)edge, s->to);
    }
    if (own != SIZE_MAX) {
        b->skip_delay = b->acquired[own - b->first_hold];
        if (!b->skip_delay)
            take(b, own, s->from);
    } else if (of_lock) {
        add_op(b->role, GT_OP_PASS, s->lock, s->to);
    }
}

/* A wait for the rest of a stopped thread takes as long as what that thread did meanwhile. */
static void add_rest(struct builder *b, const struct gt_lane_step *s, uint64_t from)
{
    const struct gt_program *p = b->program;
    add_moments(b, from);
    GT_EACH_STEP_IN(its, p->sections->graph, s->by, from, s->to) {
        uint64_t begin = its->from > from ? its->from : from;
        uint64_t end = its->to < s->to ? its->to : s->to;
        gt_sections_split(p->sections, s->by, its, begin, end, add_work, b);
    }
}

/* Adds the joins without a wait, up to `until`. */
static void add_silent(struct builder *b, uint64_t until)
{
    const struct gt_program *p = b->program;
    const struct gt_silent *end = p->silent + p->silents;
    const struct gt_silent *it = b->next_silent;
    for (; it < end && it->waiter == b->thread && it->at <= until; it++)
        add_op(b->role, GT_OP_AWAIT, it->edge, it->at);
    b->next_silent = it;
}

static void build_role(struct gt_program *p, uint32_t thread)
{
    const struct gt_lane *its = lane_of(p, thread);
    struct builder b = {.program = p,
                        .thread = thread,
                        .role = &p->role[thread],
                        .lock = GT_NOBODY,
                        .ahead = {.graph = p->sections->graph, .thread = thread}};
    b.next_silent = silent_of(p, thread);
    b.next_hold = b.first_hold = its->holds ? gt_lane_hold_after(its, p->from) : 0;
    b.acquired = gt_need(calloc(its->holds - b.first_hold + 1, 1));
    if (its->creator != GT_NOBODY && its->begin > p->from) {
        size_t edge = edge_of(p, thread, its->begin, its->creator);
        if (edge != SIZE_MAX)
            add_op(b.role, GT_OP_AWAIT, (uint32_t)edge, its->begin);
        b.woken = edge != SIZE_MAX;
    }
    GT_EACH_STEP_IN(s, p->sections->graph, thread, p->from, p->to) {
        uint64_t from = s->from > p->from ? s->from : p->from, to = s->to < p->to ? s->to : p->to;
        if (s->by != GT_NOBODY && s->to <= p->to && is_rest(p, s))
            add_rest(&b, s, from);
        else if (s->by != GT_NOBODY && s->to <= p->to)
            add_wait(&b, s);
        else
            add_stretch(&b, s, from, to);
        add_silent(&b, to);
        b.skip_delay = b.skip_delay && s->by != GT_NOBODY;
        b.lock = s->kind == GT_SYNC ? s->lock : GT_NOBODY;
        b.woken = s->by != GT_NOBODY;
        add_moments(&b, to);
    }
    add_moments(&b, p->to);
    for (; b.next_hold < its->holds && its->hold[b.next_hold].from < p->to; b.next_hold++) {
        if (b.acquired[b.next_hold - b.first_hold])
            add_op(b.role, GT_OP_RELEASE, its->hold[b.next_hold].lock, 0);
    }
    free(b.acquired);
    gt_cursor_close(&b.ahead);
}

struct gt_program *gt_program_build(struct gt_sections *sections, uint32_t thread, uint64_t from,
                                    uint64_t to)
{
    struct gt_program *p = gt_need(calloc(1, sizeof *p));
    *p = (struct gt_program){.sections = sections,
                             .target = thread,
                             .from = from,
                             .to = to,
                             .poller = GT_NOBODY,
                             .poll = GT_NOBODY};
    p->roles = sections->graph->lanes;
    p->role = gt_need(calloc(p->roles + 1, sizeof *p->role));
    p->cpus = gt_measure_cpus(sections->graph, from, to);
    find_holds(p);
    find_edges(p);
    find_silent(p);
    p->slots = gt_slots_find(p);
    for (uint32_t i = 0; i < p->roles; i++)
        build_role(p, i);
    return p;
}

void gt_program_free(struct gt_program *p)
{
    for (size_t i = 0; i < p->roles; i++)
        free(p->role[i].op);
    free(p->role);
    free(p->edge);
    free(p->silent);
    free(p->slots);
    free(p->hold);
    free(p->held);
    free(p);
}
