/*
 * The rules of v1 files (see validity.h): the order in which their events can have happened. As in
 * Go's readers: internal/trace/internal/tracev1, parser.go and order.go; up to Go 1.22
 * internal/trace. Go 1.5 numbers all events; later versions number the events of each goroutine.
 */
#include "need.h"
#include "validity_v1.h"

#include <stdlib.h>

static bool wrong_at(struct gt_check_v1 *c, const struct gt_check_source *s,
                     const struct gt_check_event *e)
{
    c->fault->offset = (uint64_t)(e->start - c->trace->base);
    c->fault->event = gt_trace_kind(c->trace->format, e->type);
    c->fault->stream = s == c->samples ? GT_NO_THREAD : s->id;
    return false;
}

/* Order --------------------------------------------------------------------------------------- */

#define ANY UINT64_MAX /* stands for the next number */

/* The state that an event needs, and the state after it. */
struct change {
    struct gt_check_g *g; /* NULL: the event needs no state */
    uint64_t seq;
    enum gt_check_state from, to;
};

static struct change change_of(struct gt_check_v1 *c, const struct gt_check_event *e)
{
    if (gt_check_blocks(e->type))
        return (struct change){gt_check_g_of(c, e->g), ANY, GT_CHECK_RUNNING, GT_CHECK_WAITING};
    switch (e->type) {
    case GT_V1_GO_CREATE:
        return (struct change){gt_check_g_of(c, e->arg[0]), 0, GT_CHECK_DEAD, GT_CHECK_RUNNABLE};
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL:
        return (struct change){gt_check_g_of(c, e->g), 1, GT_CHECK_RUNNABLE, GT_CHECK_WAITING};
    case GT_V1_GO_START:
    case GT_V1_GO_START_LABEL:
        return (struct change){gt_check_g_of(c, e->g), e->arg[1], GT_CHECK_RUNNABLE,
                               GT_CHECK_RUNNING};
    case GT_V1_GO_START_LOCAL:
        return (struct change){gt_check_g_of(c, e->g), ANY, GT_CHECK_RUNNABLE, GT_CHECK_RUNNING};
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT:
        return (struct change){gt_check_g_of(c, e->g), ANY, GT_CHECK_RUNNING, GT_CHECK_RUNNABLE};
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_SYS_EXIT:
        return (struct change){gt_check_g_of(c, e->arg[0]), e->arg[1], GT_CHECK_WAITING,
                               GT_CHECK_RUNNABLE};
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT_LOCAL:
        return (struct change){gt_check_g_of(c, e->arg[0]), ANY, GT_CHECK_WAITING,
                               GT_CHECK_RUNNABLE};
    case GT_V1_GC_START:
        return (struct change){&c->collector, e->arg[0], GT_CHECK_DEAD, GT_CHECK_DEAD};
    default: return (struct change){.g = NULL};
    }
}

static bool is_ready(const struct change *by)
{
    return !by->g || ((by->seq == ANY || by->seq == by->g->seq) && by->from == by->g->status);
}

/*
 * Queues a source that has a next event. If the event cannot happen yet, it waits for its
 * goroutine.
 */
static void queue_up(struct gt_check_v1 *c, struct gt_check_source *s)
{
    struct change by = c->by_number ? (struct change){.g = NULL} : change_of(c, &s->next);
    if (is_ready(&by)) {
        gt_queue_push(&c->queue, (struct gt_pair){s->next.key, (uintptr_t)s});
        return;
    }
    s->next_waiting = by.g->waiting;
    by.g->waiting = s;
    c->waiting++;
}

static void look_again(struct gt_check_v1 *c, struct gt_check_g *g)
{
    struct gt_check_source *s = g->waiting, *next;
    for (g->waiting = NULL; s; s = next) {
        next = s->next_waiting;
        c->waiting--;
        queue_up(c, s);
    }
}

/*
 * The goroutine's next number after an event. Events without a number add one or leave it
 * unchanged.
 */
static uint64_t number_after(const struct gt_check_event *e, const struct change *by)
{
    switch (e->type) {
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT_LOCAL: return by->g->seq + 1;
    default: return by->seq == ANY ? by->g->seq : by->seq + 1;
    }
}

/*
 * Checks the time that the end of a call has as an argument: it must not be before the call began
 * to last.
 */
static bool check_exit(struct gt_check_v1 *c, struct gt_check_source *s,
                       const struct gt_check_event *e)
{
    struct gt_check_g *g = gt_check_g_of(c, e->g);
    if (e->type == GT_V1_GO_SYS_BLOCK || e->type == GT_V1_GO_IN_SYSCALL)
        g->call = e->ts;
    if (e->type != GT_V1_GO_SYS_EXIT || !e->arg[2])
        return true;
    if (!g->call)
        return WRONG("a call ends that has not begun");
    if (e->arg[2] < g->call)
        return WRONG("a call ends before it begins");
    if (c->moves && e->arg[2] != e->ts) {
        struct gt_check_moved *moved = GT_ADD(c->moved, c->n_moved);
        *moved = (struct gt_check_moved){*e, s};
        moved->event.ts = e->arg[2];
    }
    return true;
}

typedef bool each_fn(struct gt_check_v1 *c, struct gt_check_source *s,
                     const struct gt_check_event *e);

/* Takes the next event of a source. */
static bool take(struct gt_check_v1 *c, struct gt_check_source *s, each_fn *each)
{
    struct gt_check_event e = s->next;
    struct change by = c->by_number ? (struct change){.g = NULL} : change_of(c, &e);
    bool good = is_ready(&by) || WRONG("goroutine %" PRIu64 " is in no state for that", by.g->id);
    if (good && e.ts < c->last_ts)
        good = WRONG("its time is before that of its cause");
    if (!good || !each(c, s, &e))
        return wrong_at(c, s, &e);
    c->last_ts = e.ts;
    if (by.g) {
        by.g->seq = number_after(&e, &by);
        by.g->status = by.to;
    }
    if (gt_check_next_event(c, s))
        queue_up(c, s);
    if (by.g)
        look_again(c, by.g);
    return true;
}

static bool is_stuck(struct gt_check_v1 *c)
{
    for (size_t i = 0; i < c->g.capacity; i++) {
        const struct gt_check_g *g = (void *)(uintptr_t)c->g.slots[i].value;
        if (!g || !g->waiting)
            continue;
        wrong_at(c, g->waiting, &g->waiting->next);
        return WRONG("goroutine %" PRIu64 " is never in the state for that", g->id);
    }
    wrong_at(c, c->collector.waiting, &c->collector.waiting->next);
    return WRONG("a collection is not the next one");
}

/* Takes all events in order, from the beginning. */
static bool run(struct gt_check_v1 *c, each_fn *each)
{
    c->queue =
        (struct gt_queue){gt_need(realloc(c->queue.at, (c->n + 1) * sizeof(struct gt_pair))), 0};
    c->last_ts = c->told_samples = c->waiting = 0;
    for (size_t i = 0; i < c->g.capacity; i++) {
        struct gt_check_g *g = (void *)(uintptr_t)c->g.slots[i].value;
        if (g) {
            g->seq = 0;
            g->status = GT_CHECK_DEAD;
            g->waiting = NULL;
        }
    }
    c->collector = (struct gt_check_g){0};
    for (size_t i = 0; i < c->n; i++) {
        struct gt_check_source *s = c->source[i];
        s->piece = s->first;
        s->bytes = (struct gt_bytes){0};
        s->last_g = 0;
        if (gt_check_next_event(c, s))
            queue_up(c, s);
    }
    while (c->queue.n) {
        struct gt_check_source *s = (void *)(uintptr_t)gt_queue_pop(&c->queue);
        if (!take(c, s, each))
            return false;
    }
    return !c->waiting || is_stuck(c);
}

/* Checks of each event ------------------------------------------------------------------------ */

static bool check_all(struct gt_check_v1 *c, struct gt_check_source *s,
                      const struct gt_check_event *e)
{
    return check_exit(c, s, e) && gt_check_happens(c, s, e);
}

/* Applies the ends of calls that were before that time. */
static bool move_in(struct gt_check_v1 *c, uint64_t ts)
{
    while (c->told_moved < c->n_moved && c->moved_order[c->told_moved].key < ts) {
        const struct gt_check_moved *m = &c->moved[c->moved_order[c->told_moved++].value];
        if (!gt_check_happens(c, m->on, &m->event))
            return false;
    }
    return true;
}

static bool check_moved(struct gt_check_v1 *c, struct gt_check_source *s,
                        const struct gt_check_event *e)
{
    bool moved = e->type == GT_V1_GO_SYS_EXIT && e->arg[2] && e->arg[2] != e->ts;
    return move_in(c, e->ts) && (moved || gt_check_happens(c, s, e));
}

/* Takes all events twice: in the order of their events, and in the order in which they happened. */
static bool run_moved(struct gt_check_v1 *c)
{
    if (!run(c, check_exit))
        return false;
    c->moved_order = gt_need(calloc(c->n_moved + 1, sizeof *c->moved_order));
    for (size_t i = 0; i < c->n_moved; i++)
        c->moved_order[i] = (struct gt_pair){c->moved[i].event.ts, i};
    gt_need(gt_sort(c->moved_order, c->n_moved) ? c->moved_order : NULL);
    return run(c, check_moved) && move_in(c, UINT64_MAX);
}

/*
 * Go 1.5: the end of a call has a number of its own, which may put it before earlier events of its
 * P.
 */
static bool keep_exit(struct gt_check_v1 *c, struct gt_check_source *s,
                      const struct gt_check_event *e)
{
    if (e->type != GT_V1_GO_SYS_EXIT)
        return true;
    struct gt_check_moved *moved = GT_ADD(c->moved, c->n_moved);
    *moved = (struct gt_check_moved){*e, s};
    struct gt_check_event *its = &moved->event;
    its->key = e->arg[1];
    its->ts = e->arg[2] ? e->arg[2] : e->ts;
    return true;
}

/*
 * Checks the number and time of an event, and applies it. Two events with one number have no
 * order.
 */
static bool in_time(struct gt_check_v1 *c, struct gt_check_source *s,
                    const struct gt_check_event *e)
{
    bool good = e->key >= c->next_key || WRONG("two events have the number %" PRIu64, e->key);
    if (e->ts < c->last_ts)
        good = WRONG("its time is before that of what comes before");
    c->next_key = e->key + 1;
    c->last_ts = e->ts;
    return (good && gt_check_happens(c, s, e)) || wrong_at(c, s, e);
}

static bool run_by_number(struct gt_check_v1 *c)
{
    struct gt_queue *q = &c->queue;
    *q = (struct gt_queue){gt_need(calloc(c->n + 1, sizeof *q->at)), 0};
    for (size_t i = 0; i < c->n; i++) {
        struct gt_check_source *s = c->source[i];
        s->piece = s->first;
        while (gt_check_next_event(c, s))
            keep_exit(c, s, &s->next);
        s->piece = s->first;
        s->last_g = 0;
        if (gt_check_next_event(c, s))
            queue_up(c, s);
    }
    c->moved_order = gt_need(calloc(c->n_moved + 1, sizeof *c->moved_order));
    for (size_t i = 0; i < c->n_moved; i++)
        c->moved_order[i] = (struct gt_pair){c->moved[i].event.key, i};
    gt_need(gt_sort(c->moved_order, c->n_moved) ? c->moved_order : NULL);
    while (q->n) {
        struct gt_check_source *s = (void *)(uintptr_t)gt_queue_pop(q);
        struct gt_check_event e = s->next;
        while (c->told_moved < c->n_moved && c->moved_order[c->told_moved].key < e.key) {
            const struct gt_check_moved *m = &c->moved[c->moved_order[c->told_moved++].value];
            if (!in_time(c, m->on, &m->event))
                return false;
        }
        if (e.type != GT_V1_GO_SYS_EXIT && !in_time(c, s, &e))
            return false;
        if (gt_check_next_event(c, s))
            queue_up(c, s);
    }
    return true;
}

static void free_all(struct gt_check_v1 *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (struct gt_check_piece *p = c->source[i]->first, *next; p; p = next) {
            next = p->next;
            free(p);
        }
        free(c->source[i]);
    }
    for (size_t i = 0; i < c->g.capacity; i++) {
        struct gt_check_g *g = (void *)(uintptr_t)c->g.slots[i].value;
        free(g ? g->regions : NULL);
        free(g);
    }
    gt_memo_free(&c->g);
    gt_memo_free(&c->p);
    gt_memo_free(&c->tasks);
    gt_memo_free(&c->strings);
    free(c->source);
    free(c->stack);
    free(c->sample);
    free(c->queue.at);
    free(c->moved);
    free(c->moved_order);
}

bool gt_validity_check_v1(const struct gt_trace *trace, struct gt_fault *fault)
{
    struct gt_check_v1 c = {
        .trace = trace, .fault = fault, .by_number = gt_v1_global_order(trace->format)};
    bool good = gt_check_read_records(&c);
    if (good && c.n_samples) {
        gt_need(gt_sort(c.sample, c.n_samples) ? c.sample : NULL);
        c.samples = gt_check_add_source(&c, 0);
    }
    if (good)
        good = c.by_number ? run_by_number(&c) : c.moves ? run_moved(&c) : run(&c, check_all);
    free_all(&c);
    return good;
}
