/* See graph.h. */
#include "graph.h"

#include "scripts/tool/report/frames.h"
#include "scripts/tool/report/idle.h"
#include "scripts/tool/report/places.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/roles.h"

#include "encoder/base/varint.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* Steps, packed ------------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 1024, STEP_BYTES = 1 + 7 * GT_VARINT_MAX };

/* What the first byte of a step says beside its kind. */
enum { KIND = 7, ENDED = 8, HAS_WAKER = 16, HAS_LOCK = 32, HAS_P = 64 };
_Static_assert(GT_KINDS <= KIND + 1, "a kind has three bits");

struct gt_lane_chunk {
    uint64_t from; /* of its first step */
    uint32_t bytes, room, steps;
    uint8_t data[];
};

static struct gt_lane_chunk *last_chunk(const struct gt_lane *lane)
{
    return lane->chunks ? lane->chunk[lane->chunks - 1] : NULL;
}

static void resize_last(struct gt_lane *lane, uint32_t room)
{
    struct gt_lane_chunk **slot = &lane->chunk[lane->chunks - 1];
    *slot = gt_need(realloc(*slot, sizeof **slot + room));
    (*slot)->room = room;
}

/* Most threads do little: the first chunk grows, others are whole. */
static struct gt_lane_chunk *room_for_step(struct gt_lane *lane)
{
    struct gt_lane_chunk *last = last_chunk(lane);
    if (last && last->bytes + STEP_BYTES <= last->room)
        return last;
    if (last && last->room < CHUNK_BYTES) {
        resize_last(lane, 2 * last->room);
        return last_chunk(lane);
    }
    if (last)
        resize_last(lane, last->bytes);
    uint32_t room = last ? CHUNK_BYTES : 2 * STEP_BYTES;
    lane->chunk = gt_need_room(lane->chunk, lane->chunks, &lane->room, sizeof(void *));
    struct gt_lane_chunk *fresh = gt_need(malloc(sizeof *fresh + room));
    *fresh = (struct gt_lane_chunk){.from = lane->until, .room = room};
    return lane->chunk[lane->chunks++] = fresh;
}

/* What the thread does by itself there, as long as it likes. */
static void note_alone(struct gt_spot *spot, const struct gt_step *s)
{
    if (s->by != GT_NOBODY ||
        (s->kind != GT_SLEEP && s->kind != GT_SYSCALL && s->kind != GT_NETWORK))
        return;
    uint64_t ns = s->to - s->from;
    spot->alone_least = spot->alone && spot->alone_least < ns ? spot->alone_least : ns;
    spot->alone_ns += ns;
    spot->alone++;
}

static void put_step(struct gt_graph *graph, struct gt_lane *lane, const struct gt_step *s)
{
    struct gt_lane_chunk *chunk = room_for_step(lane);
    uint8_t *p = chunk->data + chunk->bytes;
    bool waker = s->by != GT_NOBODY, lock = s->lock != GT_NOBODY, cpu = s->p != GT_NOBODY;
    *p++ = (uint8_t)(s->kind | (s->ended ? ENDED : 0) | (waker ? HAS_WAKER : 0) |
                     (lock ? HAS_LOCK : 0) | (cpu ? HAS_P : 0));
    p = gt_varint_put(p, s->to - s->from);
    p = gt_varint_put(p, s->spot);
    if (waker) {
        p = gt_varint_put(p, s->by);
        p = gt_varint_put(p, s->waker);
    }
    if (lock) {
        p = gt_varint_put(p, s->lock);
        p = gt_varint_put(p, (s->owner + UINT64_C(1)) & UINT32_MAX);
    }
    if (cpu)
        p = gt_varint_put(p, s->p);
    chunk->bytes = (uint32_t)(p - chunk->data);
    chunk->steps++;
    note_alone(&graph->spot[s->spot], s);
    lane->until = s->to;
    lane->woken |= waker;
    lane->steps++;
    graph->steps++;
}

static void unpack(const struct gt_lane_chunk *chunk, struct gt_step *out)
{
    const uint8_t *p = chunk->data, *end = p + chunk->bytes;
    uint64_t from = chunk->from;
    for (struct gt_step *s = out; s < out + chunk->steps; s++) {
        uint8_t head = *p++;
        bool waker = head & HAS_WAKER, lock = head & HAS_LOCK;
        s->from = from;
        s->to = from += gt_varint_get(&p, end);
        s->kind = head & KIND;
        s->ended = head & ENDED;
        s->spot = (uint32_t)gt_varint_get(&p, end);
        s->by = waker ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
        s->waker = waker ? (uint32_t)gt_varint_get(&p, end) : 0;
        s->lock = lock ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
        s->owner = lock ? (uint32_t)gt_varint_get(&p, end) - 1 : GT_NOBODY;
        s->p = head & HAS_P ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
    }
}

/* Numbers for what steps name ----------------------------------------------------------------- */

/* Where the key's index + 1 is; 0: it is new, and the caller adds it. */
static uint64_t *index_at(struct gt_memo *memo, uint64_t key)
{
    return gt_need(gt_memo_at(memo, key));
}

static uint32_t lock_number(struct gt_graph *graph, const struct gt_lock_state *lock)
{
    uint64_t *slot = index_at(&graph->lock_of, (uintptr_t)lock);
    if (!*slot) {
        graph->lock =
            gt_need_room(graph->lock, graph->locks, &graph->locks_room, sizeof *graph->lock);
        graph->lock[graph->locks] = lock;
        *slot = ++graph->locks;
    }
    return (uint32_t)(*slot - 1);
}

static uint32_t text_number(struct gt_graph *graph, const char *text)
{
    uint64_t *slot = index_at(&graph->text_of, (uintptr_t)text);
    if (!*slot) {
        graph->text =
            gt_need_room(graph->text, graph->texts, &graph->texts_room, sizeof *graph->text);
        graph->text[graph->texts] = text;
        *slot = ++graph->texts;
    }
    return (uint32_t)(*slot - 1);
}

static void make_room_for_stack(struct gt_graph *graph, uint32_t number)
{
    size_t room = graph->stacks_room ? graph->stacks_room : 1024;
    while (number >= room)
        room *= 2;
    graph->stack = gt_need(realloc(graph->stack, room * sizeof(void *)));
    memset(graph->stack + graph->stacks_room, 0, (room - graph->stacks_room) * sizeof(void *));
    graph->stacks_room = room;
}

static inline uint32_t stack_number(struct gt_graph *graph, const struct gt_callers *stack)
{
    if (!stack)
        return 0;
    if (stack->number >= graph->stacks_room)
        make_room_for_stack(graph, stack->number);
    graph->stack[stack->number] = stack;
    return stack->number;
}

/* Not for a signal, a post or an end. */
static bool is_for_lock(const struct gt_callers *stack)
{
    return gt_role_of(gt_leaf_of(stack)) == GT_ROLE_OTHER;
}

static bool is_busy(const struct gt_callers *stack)
{
    for (uint32_t i = 1; stack && i < stack->n; i++) {
        if (gt_frame_kinds(stack, i) & GT_FRAME_BUSY)
            return true;
    }
    return false;
}

static uint32_t spot_number(struct gt_graph *graph, const struct gt_spot *spot)
{
    uint64_t key = (uint64_t)stack_number(graph, spot->stack) << 32 |
                   (uint64_t)stack_number(graph, spot->after) << 2 | spot->yields << 1 | spot->runs;
    uint64_t *slot = index_at(&graph->spot_of, key + 1);
    if (!*slot) {
        graph->spot =
            gt_need_room(graph->spot, graph->spots, &graph->spots_room, sizeof *graph->spot);
        graph->spot[graph->spots] = *spot;
        graph->spot[graph->spots].locks = !spot->runs && is_for_lock(spot->stack);
        graph->spot[graph->spots].busy = !spot->runs && is_busy(spot->stack);
        *slot = ++graph->spots;
    }
    return (uint32_t)(*slot - 1);
}

/* Reading ------------------------------------------------------------------------------------- */

static struct gt_lane *lane_of(struct gt_graph *graph, const struct gt_thread_state *thread)
{
    while (graph->lanes <= thread->number) {
        graph->lane =
            gt_need_room(graph->lane, graph->lanes, &graph->lanes_room, sizeof *graph->lane);
        graph->lane[graph->lanes++] = (struct gt_lane){0};
    }
    graph->lane[thread->number].thread = thread;
    return &graph->lane[thread->number];
}

/* What runs, or would, is not where a call is, but between two. */
static bool is_between(enum gt_kind kind)
{
    return kind == GT_RUNNING || kind == GT_UNSEEN;
}

enum { PENDING_MOST = 4096 };

/* The steps that lead to that call. */
static void settle(struct gt_graph *graph, struct gt_lane *lane, const struct gt_callers *after)
{
    struct gt_spot between = {.stack = lane->before, .after = after, .runs = true};
    uint32_t spot = lane->pendings ? spot_number(graph, &between) : 0;
    for (size_t i = 0; i < lane->pendings; i++) {
        lane->pending[i].spot = spot;
        put_step(graph, lane, &lane->pending[i]);
    }
    lane->pendings = 0;
}

static void wait_for_call(struct gt_graph *graph, struct gt_lane *lane, const struct gt_step *step)
{
    if (lane->pendings == PENDING_MOST)
        settle(graph, lane, NULL);
    lane->pending =
        gt_need_room(lane->pending, lane->pendings, &lane->pendings_room, sizeof *lane->pending);
    lane->pending[lane->pendings++] = *step;
}

static uint64_t end_of(const struct gt_lane *lane)
{
    return lane->pendings ? lane->pending[lane->pendings - 1].to : lane->until;
}

/* Steps follow each other without gaps: what is missing is a step of a kind of its own. */
static bool fit(struct gt_graph *graph, struct gt_lane *lane, struct gt_step *step)
{
    if (!lane->steps && !lane->pendings)
        lane->begin = lane->until = step->from;
    uint64_t last = end_of(lane);
    if (step->from > last) {
        struct gt_step gap = *step;
        gap.from = last;
        gap.to = step->from;
        gap.kind = GT_UNSEEN;
        gap.by = gap.lock = gap.p = GT_NOBODY;
        wait_for_call(graph, lane, &gap);
    }
    step->from = last;
    return step->to > last;
}

/* Ps are CPUs, or it is not known yet whether they are. */
static uint32_t cpu_of(const struct gt_graph *graph, const struct gt_span *span)
{
    const struct gt_threads *t = &graph->threads;
    bool has_one = span->kind == GT_RUNNING || span->kind == GT_SCHED;
    bool told = has_one && (t->cpus ? span->p < t->cpus : !t->accounts && span->p < GT_NOBODY);
    return told ? (uint32_t)span->p : GT_NOBODY;
}

/* It has not waited for anything, nor lost its CPU: it has said that others may have that. */
static bool is_yield(const struct gt_span *span)
{
    return span->kind == GT_SCHED && strcmp(span->thread->reason, "runtime.Gosched") == 0;
}

static void add_span(void *arg, const struct gt_span *span)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, span->thread);
    struct gt_step step = {.from = span->from,
                           .to = span->from + span->ns,
                           .kind = span->kind,
                           .ended = span->ended,
                           .by = GT_NOBODY,
                           .lock = GT_NOBODY,
                           .owner = GT_NOBODY,
                           .p = cpu_of(graph, span)};
    gt_idle_note(span);
    if (!fit(graph, lane, &step))
        return;
    bool yields = is_yield(span), preempted = span->kind == GT_SCHED && lane->pendings;
    if (is_between(span->kind) || (preempted && !yields)) {
        wait_for_call(graph, lane, &step);
        return;
    }
    if (span->by && span->by != span->thread) {
        step.by = span->by->number;
        step.waker = stack_number(graph, span->waker);
    }
    if (span->wanted) {
        const struct gt_thread_state *owner =
            gt_threads_find(&graph->threads, span->wanted->holder);
        step.lock = lock_number(graph, span->wanted->lock);
        step.owner = owner && owner != span->thread ? owner->number : GT_NOBODY;
    }
    settle(graph, lane, span->stack);
    step.spot = spot_number(graph, &(struct gt_spot){.stack = span->stack, .yields = yields});
    if (step.kind == GT_NETWORK && graph->spot[step.spot].busy)
        step.kind = GT_SYNC; /* for others, by a descriptor or a signal: no input */
    put_step(graph, lane, &step);
    if ((span->kind != GT_SCHED || yields) && span->stack)
        lane->before = span->stack;
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, hold->thread);
    lane->hold = gt_need_room(lane->hold, lane->holds, &lane->holds_room, sizeof *lane->hold);
    lane->hold[lane->holds++] = (struct gt_hold){hold->from, hold->to, lock_number(graph, lock),
                                                 text_number(graph, hold->place), hold->longer};
    graph->holds++;
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, thread);
    lane->sample =
        gt_need_room(lane->sample, lane->samples, &lane->samples_room, sizeof *lane->sample);
    lane->sample[lane->samples++] = (struct gt_why_sample){ns, stack_number(graph, stack)};
    graph->samples++;
}

static __attribute__((noinline)) void note_task(struct gt_graph *graph,
                                                const struct gt_happening *h,
                                                const struct gt_thread_state *thread, uint64_t ns)
{
    uint64_t *slot = index_at(&graph->task_of, h->task + 1);
    if (h->type == GT_EV_USER_TASK_BEGIN) {
        graph->task =
            gt_need_room(graph->task, graph->tasks, &graph->tasks_room, sizeof *graph->task);
        graph->task[graph->tasks] =
            (struct gt_task){.name = h->text, .id = h->task, .from = ns, .thread = thread->number};
        *slot = ++graph->tasks;
    } else if (*slot) {
        struct gt_task *task = &graph->task[*slot - 1];
        task->to = ns;
        task->ender = thread->number;
        task->ended = true;
    }
}

static void add_event(void *arg, const struct gt_happening *h, const struct gt_thread_state *thread,
                      uint64_t ns)
{
    if (thread && (h->type == GT_EV_USER_TASK_BEGIN || h->type == GT_EV_USER_TASK_END))
        note_task(arg, h, thread, ns);
}

static int by_time(const void *a, const void *b)
{
    const struct gt_why_sample *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* It had the lock since it was last in no call, at least: nobody takes one inside of another. */
static void lengthen_holds(struct gt_graph *graph, uint32_t thread)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct gt_cursor c = {.graph = graph, .thread = thread};
    for (size_t i = 0; i < lane->holds; i++) {
        struct gt_hold *h = &lane->hold[i];
        const struct gt_step *s = h->longer ? gt_cursor_seek(&c, h->from) : NULL;
        if (s && !graph->spot[s->spot].runs)
            h->from = s->from;
    }
    gt_cursor_close(&c);
}

void gt_graph_read(struct gt_graph *graph, const char *path)
{
    *graph = (struct gt_graph){.threads = {.span = add_span,
                                           .sample = add_sample,
                                           .event = add_event,
                                           .hold = add_hold,
                                           .arg = graph}};
    gt_open_trace(&graph->trace, path);
    gt_read_threads(&graph->threads, &graph->trace);
    gt_idle_decide(&graph->trace);
    for (size_t i = 0; i < graph->lanes; i++) {
        struct gt_lane *lane = &graph->lane[i];
        settle(graph, lane, NULL);
        free(lane->pending);
        lane->pending = NULL;
        if (lane->samples)
            qsort(lane->sample, lane->samples, sizeof *lane->sample, by_time);
        lengthen_holds(graph, (uint32_t)i);
    }
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next)
        lane_of(graph, t); /* who did nothing */
}

/* Going through steps ------------------------------------------------------------------------- */

static const struct gt_lane *lane_at(const struct gt_cursor *c)
{
    return &c->graph->lane[c->thread];
}

/* The first that was over after that time: an index. */
static size_t handed_after(const struct gt_lane *lane, uint64_t at)
{
    size_t low = 0, high = lane->handeds;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane->handed[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Waits that somebody has ended, as is known by now: from then on the thread had no CPU. */
static size_t add_handed(const struct gt_lane *lane, const struct gt_step *in, size_t n,
                         struct gt_step *out)
{
    size_t steps = 0, next = handed_after(lane, in->from);
    for (size_t i = 0; i < n; i++) {
        struct gt_step s = in[i];
        const struct gt_handed *h = next < lane->handeds ? &lane->handed[next] : NULL;
        if (h && h->at <= s.to) {
            struct gt_step wait = s;
            wait.to = s.from = h->at;
            wait.by = h->by;
            s.kind = GT_SCHED;
            out[steps++] = wait;
            next++;
            if (s.from == s.to)
                continue;
        }
        out[steps++] = s;
    }
    return steps;
}

static void load(struct gt_cursor *c, size_t chunk)
{
    if (c->open && c->chunk == chunk)
        return;
    const struct gt_lane_chunk *it = lane_at(c)->chunk[chunk];
    size_t room = lane_at(c)->handeds ? 2 * it->steps : it->steps;
    if (room > c->room) {
        free(c->step);
        c->step = gt_need(malloc(room * sizeof *c->step));
        c->room = room;
    }
    struct gt_step *whole = c->step + room - it->steps;
    unpack(it, whole);
    c->n = lane_at(c)->handeds ? add_handed(lane_at(c), whole, it->steps, c->step) : it->steps;
    c->chunk = chunk;
    c->open = true;
}

const struct gt_step *gt_cursor_seek(struct gt_cursor *c, uint64_t at)
{
    const struct gt_lane *lane = lane_at(c);
    size_t low = 0, high = lane->chunks;
    if (!lane->chunks || at <= lane->begin || at > lane->until)
        return NULL;
    if (c->open && c->step[0].from < at && at <= c->step[c->n - 1].to)
        low = high = c->chunk + 1;
    while (low < high) { /* chunks that begin before `at` */
        size_t middle = low + (high - low) / 2;
        if (lane->chunk[middle]->from < at)
            low = middle + 1;
        else
            high = middle;
    }
    load(c, low - 1);
    for (low = 0, high = c->n; low < high;) { /* steps that end before it */
        size_t middle = low + (high - low) / 2;
        if (c->step[middle].to < at)
            low = middle + 1;
        else
            high = middle;
    }
    c->i = low;
    return &c->step[low];
}

const struct gt_step *gt_cursor_next(struct gt_cursor *c)
{
    if (!c->open) {
        if (!lane_at(c)->chunks)
            return NULL;
        load(c, 0);
        c->i = 0;
        return &c->step[0];
    }
    if (c->i + 1 < c->n)
        return &c->step[++c->i];
    if (c->chunk + 1 == lane_at(c)->chunks)
        return NULL;
    load(c, c->chunk + 1);
    c->i = 0;
    return &c->step[0];
}

const struct gt_step *gt_cursor_from(struct gt_cursor *c, uint64_t from)
{
    const struct gt_lane *lane = lane_at(c);
    if (!lane->chunks || from >= lane->until)
        return NULL;
    return from >= lane->begin ? gt_cursor_seek(c, from + 1) : gt_cursor_seek(c, lane->begin + 1);
}

void gt_cursor_close(struct gt_cursor *c)
{
    free(c->step);
    *c = (struct gt_cursor){.graph = c->graph, .thread = c->thread};
}

/* Locks and samples --------------------------------------------------------------------------- */

bool gt_graph_is_lock_wait(const struct gt_graph *graph, const struct gt_step *step)
{
    return step->kind == GT_SYNC && step->lock != GT_NOBODY && graph->spot[step->spot].locks &&
           *graph->lock[step->lock]->name;
}

size_t gt_lane_hold_after(const struct gt_lane *lane, uint64_t at)
{
    size_t low = 0, high = lane->holds;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane->hold[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t gt_lane_sample_from(const struct gt_lane *lane, uint64_t at)
{
    size_t low = 0, high = lane->samples;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane->sample[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
