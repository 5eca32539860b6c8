/* See graph.h. */
#include "graph.h"

#include "early_holds.h"
#include "futex_holds.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/base/varint.h"
#include "encoder/format/channel.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/frame_code.h"
#include "scripts/tool/report/idle.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/roles.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Steps, packed ------------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 1024, STEP_BYTES = 1 + 7 * GT_VARINT_MAX };

/* Beside the kind, the first byte of a packed step says which fields follow. */
enum { KIND = 7, ENDED = 8, HAS_WAKER = 16, HAS_LOCK = 32, HAS_P = 64, KEPT = 128 };
_Static_assert(GT_KINDS <= KIND + 1, "a kind has three bits");

struct gt_lane_chunk {
    uint64_t from; /* begin of its first step */
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

/* Most threads do little, so the first chunk grows. Later chunks have their full size at once. */
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
    struct gt_lane_chunk *fresh = gt_need(malloc(sizeof *fresh + room));
    *fresh = (struct gt_lane_chunk){.from = lane->until, .room = room};
    return *GT_ADD(lane->chunk, lane->chunks) = fresh;
}

/*
 * Sums up calls, sleeps and waits for input there that no other thread ended. Below a function with
 * a busy name, as wait_result, a wait for input is GT_SYNC: see add_span.
 */
static void note_alone(struct gt_spot *spot, const struct gt_lane_step *s)
{
    bool input = s->kind == GT_NETWORK || (s->kind == GT_SYNC && spot->busy);
    if (s->by != GT_NOBODY || (!input && s->kind != GT_SLEEP && s->kind != GT_SYSCALL))
        return;
    uint64_t ns = s->to - s->from;
    spot->alone_least = spot->alone && spot->alone_least < ns ? spot->alone_least : ns;
    spot->alone_ns += ns;
    spot->alone++;
}

static void note_last_wait(struct gt_lane *lane, const struct gt_lane_step *s, bool locks)
{
    if (s->kind == GT_RUNNING)
        lane->ran += s->to - s->from;
    else if (s->kind != GT_SCHED && !(s->kind == GT_SYNC && locks)) {
        lane->last_wait = s->to;
        lane->ran = 0;
    }
}

static void put_step(struct gt_graph *graph, struct gt_lane *lane, const struct gt_lane_step *s)
{
    struct gt_lane_chunk *chunk = room_for_step(lane);
    uint8_t *p = chunk->data + chunk->bytes;
    bool waker = s->by != GT_NOBODY, lock = s->lock != GT_NOBODY, cpu = s->p != GT_NOBODY;
    *p++ = (uint8_t)(s->kind | (s->ended ? ENDED : 0) | (waker ? HAS_WAKER : 0) |
                     (lock ? HAS_LOCK : 0) | (cpu ? HAS_P : 0) | (s->kept ? KEPT : 0));
    p = gt_varint_put(p, s->to - s->from);
    p = gt_varint_put(p, (uint64_t)s->spot << 1 | s->anew);
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
    note_last_wait(lane, s, graph->spot[s->spot].locks);
    lane->until = s->to;
    lane->woken |= waker;
    lane->steps++;
    graph->steps++;
}

static void unpack(const struct gt_lane_chunk *chunk, struct gt_lane_step *out)
{
    const uint8_t *p = chunk->data, *end = p + chunk->bytes;
    uint64_t from = chunk->from;
    for (struct gt_lane_step *s = out; s < out + chunk->steps; s++) {
        uint8_t head = *p++;
        bool waker = head & HAS_WAKER, lock = head & HAS_LOCK;
        s->from = from;
        s->to = from += gt_varint_get(&p, end);
        s->kind = head & KIND;
        s->ended = head & ENDED;
        s->kept = head & KEPT;
        s->relocks = s->told = s->slot = s->guessed = s->ending = false;
        uint64_t spot = gt_varint_get(&p, end);
        s->spot = (uint32_t)(spot >> 1);
        s->anew = spot & 1;
        s->by = waker ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
        s->waker = waker ? (uint32_t)gt_varint_get(&p, end) : 0;
        s->lock = lock ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
        s->owner = lock ? (uint32_t)gt_varint_get(&p, end) - 1 : GT_NOBODY;
        s->p = head & HAS_P ? (uint32_t)gt_varint_get(&p, end) : GT_NOBODY;
    }
}

/* Numbers for what steps name ----------------------------------------------------------------- */

/* The memo's slot for the key: its index + 1. 0: the key is new, and the caller adds it. */
static uint64_t *index_at(struct gt_memo *memo, uint64_t key)
{
    return gt_need(gt_memo_at(memo, key));
}

static uint32_t lock_number(struct gt_graph *graph, const struct gt_lock_state *lock)
{
    uint64_t *slot = index_at(&graph->lock_of, (uintptr_t)lock);
    if (!*slot) {
        *GT_ADD(graph->lock, graph->locks) = lock;
        *slot = graph->locks;
    }
    return (uint32_t)(*slot - 1);
}

uint32_t gt_graph_add_lock(struct gt_graph *graph, const char *name, uint64_t slots)
{
    struct gt_lock_state *lock = gt_need(calloc(1, sizeof *lock));
    lock->name = name;
    *index_at(&graph->slots_of, (uintptr_t)lock) = slots;
    return lock_number(graph, lock);
}

uint64_t gt_graph_slots(const struct gt_graph *graph, uint32_t lock)
{
    uint64_t key = (uintptr_t)graph->lock[lock];
    return gt_memo_find(&graph->slots_of, key);
}

static uint32_t text_number(struct gt_graph *graph, const char *text)
{
    uint64_t *slot = index_at(&graph->text_of, (uintptr_t)text);
    if (!*slot) {
        *GT_ADD(graph->text, graph->texts) = text;
        *slot = graph->texts;
    }
    return (uint32_t)(*slot - 1);
}

static inline uint32_t stack_number(struct gt_graph *graph, const struct gt_callers *stack)
{
    if (!stack)
        return 0;
    graph->stack = gt_need_zeros(graph->stack, &graph->stacks_room, stack->number, sizeof(void *));
    graph->stack[stack->number] = stack;
    return stack->number;
}

static bool is_busy(const struct gt_callers *stack)
{
    for (uint32_t i = 1; stack && i < stack->n; i++) {
        if (gt_frame_kinds(stack, i) & GT_FRAME_BUSY)
            return true;
    }
    return false;
}

/* Whether a call there may end waits of others for a descriptor, or for a queue of messages. */
static bool is_giving(const struct gt_callers *stack)
{
    static const char *const calls[] = {"write", "send", "mq_send", "mq_timedsend", "msgsnd", NULL};
    const char *call = gt_leaf_of(stack);
    return gt_begins_with(call + strspn(call, "_"), calls);
}

/* Whether a call there may wait for a lock on a file. */
static bool is_of_file(const struct gt_callers *stack)
{
    static const char *const calls[] = {"flock", "fcntl", "lockf", NULL};
    const char *call = gt_leaf_of(stack);
    return gt_begins_with(call, calls) && strcmp(call, "flockfile") != 0;
}

static bool is_mutex(const char *function)
{
    static const char slow[] = "lock_contended";
    size_t n = strlen(function);
    return strstr(function, "Mutex") && n >= sizeof slow &&
           strcmp(function + n - (sizeof slow - 1), slow) == 0;
}

static bool is_guard(const char *function)
{
    static const char begin[] = "__cxa_guard_acquire";
    return strncmp(function, begin, sizeof begin - 1) == 0;
}

/* Whether the stack is of a wait for a futex in a function as `is` knows them, or just below. */
static bool is_futex_in(const struct gt_callers *stack, bool (*is)(const char *function))
{
    enum { DEPTH = 4 };
    if (gt_role_of(gt_leaf_of(stack)) != GT_ROLE_FUTEX)
        return false;
    for (uint32_t i = 1; i < stack->n && i < DEPTH; i++) {
        if (is(stack->frame[i].func))
            return true;
    }
    return false;
}

static uint32_t spot_number(struct gt_graph *graph, const struct gt_spot *spot)
{
    uint64_t key = (uint64_t)stack_number(graph, spot->stack) << 32 |
                   (uint64_t)stack_number(graph, spot->after) << 4 | spot->spins << 3 |
                   spot->locks << 2 | spot->yields << 1 | spot->runs;
    if (spot->region)
        key = gt_hash_mix(gt_hash_mix(key, 0), stack_number(graph, spot->region));
    uint64_t *slot = index_at(&graph->spot_of, key + 1);
    if (!*slot) {
        struct gt_spot *its = GT_ADD(graph->spot, graph->spots);
        *its = *spot;
        if (!spot->runs) {
            enum gt_role role = gt_role_of(gt_leaf_of(spot->stack));
            its->once = is_futex_in(spot->stack, is_guard);
            its->futex = its->once || is_futex_in(spot->stack, is_mutex);
            its->locks |= role == GT_ROLE_OTHER || its->futex; /* no signal, no thread's end */
            its->token = role == GT_ROLE_SEMAPHORE;
            its->joins = role == GT_ROLE_JOIN;
            its->reaps = gt_waits_for_child(gt_leaf_of(spot->stack));
            its->gives = is_giving(spot->stack);
            its->of_file = is_of_file(spot->stack);
            its->busy = is_busy(spot->stack);
        }
        *slot = graph->spots;
    }
    return (uint32_t)(*slot - 1);
}

/* Reading ------------------------------------------------------------------------------------- */

static struct gt_lane *lane_of(struct gt_graph *graph, const struct gt_thread_state *thread)
{
    while (graph->lanes <= thread->number)
        (void)GT_ADD(graph->lane, graph->lanes);
    graph->lane[thread->number].thread = thread;
    return &graph->lane[thread->number];
}

/* Whether steps of that kind lie between two calls. */
static bool is_between(enum gt_kind kind)
{
    return kind == GT_RUNNING || kind == GT_UNSEEN;
}

enum { PENDING_MOST = 4096 };

/*
 * Where a pending step lies. In an OpenMP region, a call that was made before the region tells
 * nothing of the step.
 */
static struct gt_spot spot_between(const struct gt_graph *graph, const struct gt_lane *lane,
                                   const struct gt_lane_step *s, const struct gt_callers *after)
{
    const struct gt_omp_region *region =
        graph->regions.n
            ? gt_omp_region_at(&graph->regions, lane->thread, s->from + (s->to - s->from) / 2)
            : NULL;
    bool before = region && lane->pending[0].from <= region->from;
    return (struct gt_spot){.stack = before ? NULL : lane->before,
                            .after = after,
                            .region = region ? region->call : NULL,
                            .runs = true};
}

/* Adds the pending steps, now that the call after them is known. spins: see gt_spot. */
static void settle(struct gt_graph *graph, struct gt_lane *lane, const struct gt_callers *after,
                   bool spins)
{
    uint32_t spot = 0;
    for (size_t i = 0; i < lane->pendings; i++) {
        if (i == 0 || graph->regions.n) { /* outside of OpenMP all of them lie at one place */
            struct gt_spot between = spot_between(graph, lane, &lane->pending[i], after);
            between.spins = spins;
            spot = spot_number(graph, &between);
        }
        lane->pending[i].spot = spot;
        put_step(graph, lane, &lane->pending[i]);
    }
    lane->pendings = 0;
}

static void add_pending(struct gt_graph *graph, struct gt_lane *lane,
                        const struct gt_lane_step *step)
{
    if (lane->pendings == PENDING_MOST)
        settle(graph, lane, NULL, false);
    *GT_ADD(lane->pending, lane->pendings) = *step;
}

/* Cuts the step where OpenMP regions of the thread begin or end. */
static void wait_for_call(struct gt_graph *graph, struct gt_lane *lane,
                          const struct gt_lane_step *step)
{
    struct gt_lane_step part = *step;
    while (graph->regions.n && part.from < step->to) {
        part.to = gt_omp_edge(&graph->regions, lane->thread, part.from, step->to);
        if (part.to == step->to)
            break;
        add_pending(graph, lane, &part);
        part.from = part.to;
    }
    part.to = step->to;
    add_pending(graph, lane, &part);
}

static uint64_t end_of(const struct gt_lane *lane)
{
    return lane->pendings ? lane->pending[lane->pendings - 1].to : lane->until;
}

/* Makes steps follow each other without gaps: a gap becomes a step of kind GT_UNSEEN. */
static bool fit(struct gt_graph *graph, struct gt_lane *lane, struct gt_lane_step *step)
{
    if (!lane->steps && !lane->pendings)
        lane->begin = lane->until = step->from;
    uint64_t last = end_of(lane);
    if (step->from > last) {
        struct gt_lane_step gap = *step;
        gap.from = last;
        gap.to = step->from;
        gap.kind = GT_UNSEEN;
        gap.by = gap.lock = gap.p = GT_NOBODY;
        wait_for_call(graph, lane, &gap);
    }
    step->from = last;
    return step->to > last;
}

/*
 * The CPU of the span. Ps count as CPUs, also as long as the trace has not told whether they are.
 */
static uint32_t cpu_of(const struct gt_graph *graph, const struct gt_span *span)
{
    const struct gt_threads *t = &graph->threads;
    bool has_one = span->kind == GT_RUNNING || span->kind == GT_SCHED;
    bool told = has_one && (t->cpus ? span->p < t->cpus : !t->accounts && span->p < GT_NOBODY);
    return told ? (uint32_t)span->p : GT_NOBODY;
}

/* Whether the thread yielded: it neither waited nor lost its CPU. */
static bool is_yield(const struct gt_span *span)
{
    static const char once[] = "runtime.Gosched";
    return span->kind == GT_SCHED && strncmp(span->thread->reason, once, sizeof once - 1) == 0;
}

/* Whether a worker of OpenMP was woken for a region, and has no CPU yet. It waited for no call. */
static bool is_late_in_region(const struct gt_graph *graph, const struct gt_span *span)
{
    return span->kind == GT_SCHED && span->stack && gt_is_parked(gt_leaf_of(span->stack)) &&
           gt_omp_region_at(&graph->regions, span->thread, span->from + span->ns);
}

static void add_span(void *arg, const struct gt_span *span)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, span->thread);
    struct gt_lane_step step = {.from = span->from,
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
    preempted |= is_late_in_region(graph, span);
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
        step.kept = span->wanted->kept && !span->again;
    }
    step.anew = gt_begins_at_condition(span);
    settle(graph, lane, span->stack, yields && strcmp(span->thread->reason, GT_YIELDS_TEXT) == 0);
    step.spot = spot_number(
        graph,
        &(struct gt_spot){.stack = span->stack, .yields = yields, .locks = gt_is_for_token(span)});
    if (step.kind == GT_NETWORK && graph->spot[step.spot].busy)
        step.kind = GT_SYNC; /* a wait for other threads, by a descriptor or a signal: no input */
    put_step(graph, lane, &step);
    if ((span->kind != GT_SCHED || yields) && span->stack) {
        lane->before = span->stack;
        lane->call_from = step.from;
        lane->call_to = step.to;
    }
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, hold->thread);
    *GT_ADD(lane->hold, lane->holds) = (struct gt_lock_hold){hold->from,
                                                             hold->to,
                                                             lock_number(graph, lock),
                                                             text_number(graph, hold->place),
                                                             hold->longer,
                                                             gt_lock_is_gil(lock),
                                                             false};
    graph->holds++;
}

void gt_graph_add_hold(struct gt_graph *graph, uint32_t thread, struct gt_lock_hold hold,
                       const char *place)
{
    struct gt_lane *lane = &graph->lane[thread];
    hold.longer = true;
    hold.place = text_number(graph, place);
    *GT_ADD(lane->hold, lane->holds) = hold;
    graph->holds++;
}

/* Of two that end together, the inner one comes first. */
GT_ORDER(by_hold_end, struct gt_lock_hold, GT_UP(to) ?: GT_DOWN(from))

void gt_graph_sort_holds(struct gt_graph *graph)
{
    for (size_t i = 0; i < graph->lanes; i++) {
        struct gt_lane *lane = &graph->lane[i];
        size_t k = 1;
        while (k < lane->holds && lane->hold[k - 1].to <= lane->hold[k].to)
            k++;
        if (k < lane->holds)
            qsort(lane->hold, lane->holds, sizeof *lane->hold, by_hold_end);
    }
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct gt_graph *graph = arg;
    struct gt_lane *lane = lane_of(graph, thread);
    *GT_ADD(lane->sample, lane->samples) =
        (struct gt_why_sample){ns, stack_number(graph, stack), 0};
    graph->samples++;
}

static __attribute__((noinline)) void note_task(struct gt_graph *graph,
                                                const struct gt_happening *h,
                                                const struct gt_thread_state *thread, uint64_t ns)
{
    uint64_t *slot = index_at(&graph->task_of, h->task + 1);
    if (h->type == GT_EV_USER_TASK_BEGIN) {
        *GT_ADD(graph->task, graph->tasks) = (struct gt_user_task){
            .name = h->text, .id = h->task, .from = ns, .thread = thread->number};
        *slot = graph->tasks;
    } else if (*slot) {
        struct gt_user_task *task = &graph->task[*slot - 1];
        task->to = ns;
        task->ender = thread->number;
        task->ended = true;
    }
}

/* Notes the log of a call that moved one byte through a pipe: encoder/format/channel.h. */
static __attribute__((noinline)) void note_byte(struct gt_graph *graph,
                                                const struct gt_happening *h,
                                                const struct gt_thread_state *thread)
{
    enum { BYTES_MOST = 1000000 };
    static const char pipe[] = GT_CHANNEL "pipe ", one_read[] = GT_CHANNEL_READ "1",
                      one_wrote[] = GT_CHANNEL_WROTE "1";
    const struct gt_lane *lane = lane_of(graph, thread);
    size_t n = strlen(one_wrote);
    bool writes = strncmp(h->more, one_wrote, n) == 0 && (!h->more[n] || h->more[n] == ' ');
    if (strncmp(h->text, pipe, sizeof pipe - 1) != 0 || graph->bytes == BYTES_MOST ||
        !lane->before || (!writes && strcmp(h->more, one_read) != 0))
        return;
    *GT_ADD(graph->byte, graph->bytes) = (struct gt_byte){.pipe = h->text,
                                                          .from = lane->call_from,
                                                          .to = lane->call_to,
                                                          .stack = lane->before,
                                                          .thread = thread->number,
                                                          .writes = writes};
}

static void add_event(void *arg, const struct gt_happening *h, const struct gt_thread_state *thread,
                      uint64_t ns)
{
    struct gt_graph *graph = arg;
    if (h->type == GT_EV_USER_LOG && !h->task && gt_channel_is_key(h->text))
        graph->channels = true;
    if (thread && h->type == GT_EV_USER_LOG && !h->task)
        note_byte(graph, h, thread);
    if (thread)
        gt_omp_note(&graph->regions, h, thread, ns);
    if (thread && (h->type == GT_EV_USER_TASK_BEGIN || h->type == GT_EV_USER_TASK_END))
        note_task(graph, h, thread, ns);
}

bool gt_hold_is_rough(const struct gt_lock_hold *h)
{
    return h->to - h->from >= 1000000;
}

uint64_t gt_hold_slack(const struct gt_lock_hold *h)
{
    return 2000 + gt_locks_slack(h->to - h->from);
}

/*
 * No thread locks inside another call. So a hold that seems to begin there, or that began earlier
 * than recorded, began before the call, and before what the thread did just before the call. Only
 * the length of a hold is recorded, and the holder may lose its CPU between the end of the hold and
 * the record of it. A wait for a condition variable takes its mutex again, but at its end.
 */
static void lengthen_holds(struct gt_graph *graph, uint32_t thread)
{
    struct gt_lane *lane = &graph->lane[thread];
    GT_CURSOR(c, graph, thread);
    for (size_t i = 0; i < lane->holds; i++) {
        struct gt_lock_hold *h = &lane->hold[i];
        bool rough = gt_hold_is_rough(h);
        const struct gt_lane_step *s = rough || h->longer ? gt_cursor_seek(&c, h->from) : NULL;
        bool inside = rough && s && !graph->spot[s->spot].runs && s->lock != h->lock &&
                      h->to >= s->to && (h->from - s->from) * 10 < s->to - s->from;
        if (inside)
            h->from = s->from - (s->from > lane->begin);
        else if (s && h->longer && !graph->spot[s->spot].runs)
            h->from = s->from;
    }
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
        settle(graph, lane, NULL, false);
        free(lane->pending);
        lane->pending = NULL;
    }
    gt_early_holds_find(graph);
    gt_futex_holds_find(graph);
    for (size_t i = 0; i < graph->lanes; i++)
        lengthen_holds(graph, (uint32_t)i);
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next)
        lane_of(graph, t); /* also threads without events */
}

/* Going through steps ------------------------------------------------------------------------- */

static const struct gt_lane *lane_at(const struct gt_cursor *c)
{
    return &c->graph->lane[c->thread];
}

/* Index of the first inferred wake-up after `at`. */
static size_t handed_after(const struct gt_lane *lane, uint64_t at)
{
    return gt_count_up_to(lane->handed, lane->handeds, sizeof *lane->handed, sizeof at, at);
}

/*
 * Cuts waits at their inferred wake-up, and delays at the release of the lock that they were for:
 * from then on the thread was runnable without a CPU. A wait for a child goes on until the child
 * has ended, and no event tells when that was.
 */
static size_t add_handed(const struct gt_lane *lane, const struct gt_lane_step *in, size_t n,
                         struct gt_lane_step *out)
{
    size_t steps = 0, next = handed_after(lane, in->from);
    for (size_t i = 0; i < n; i++) {
        struct gt_lane_step s = in[i];
        const struct gt_handed *h = next < lane->handeds ? &lane->handed[next] : NULL;
        if (h && h->at <= s.to) {
            struct gt_lane_step wait = s;
            wait.to = s.from = h->at;
            wait.by = h->by;
            wait.guessed = h->guessed;
            if (h->lock != GT_NOBODY) {
                wait.kind = GT_SYNC;
                wait.lock = h->lock;
                wait.owner = h->slot ? GT_NOBODY : h->by;
                wait.slot = h->slot;
                wait.relocks = !h->slot;
                wait.told = s.kind == GT_SYNC && s.lock != h->lock;
            }
            s.ending = h->ending;
            s.kind = h->ending ? s.kind : h->unseen ? GT_UNSEEN : GT_SCHED;
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
    struct gt_lane_step *whole = c->step + room - it->steps;
    unpack(it, whole);
    c->n = lane_at(c)->handeds ? add_handed(lane_at(c), whole, it->steps, c->step) : it->steps;
    c->chunk = chunk;
    c->open = true;
}

const struct gt_lane_step *gt_cursor_seek(struct gt_cursor *c, uint64_t at)
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

const struct gt_lane_step *gt_cursor_next(struct gt_cursor *c)
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

const struct gt_lane_step *gt_cursor_from(struct gt_cursor *c, uint64_t from)
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

struct gt_cursor *gt_cursors_open(const struct gt_graph *graph)
{
    struct gt_cursor *cursor = gt_need(calloc(graph->lanes + 1, sizeof *cursor));
    for (uint32_t i = 0; i < graph->lanes; i++)
        cursor[i] = (struct gt_cursor){.graph = graph, .thread = i};
    return cursor;
}

void gt_cursors_close(struct gt_cursor *cursor)
{
    for (size_t i = 0; cursor[i].graph; i++)
        gt_cursor_close(&cursor[i]);
    free(cursor);
}

GT_ORDER(by_end, struct gt_handed, GT_UP(at))

void gt_lane_hand(struct gt_lane *lane, struct gt_handed *handed, size_t n)
{
    if (n) {
        lane->handed = gt_need(realloc(lane->handed, (lane->handeds + n) * sizeof *handed));
        memcpy(lane->handed + lane->handeds, handed, n * sizeof *handed);
        lane->handeds += n;
        lane->woken = true;
        qsort(lane->handed, lane->handeds, sizeof *handed, by_end);
    }
    free(handed);
}

void gt_graph_note_guess(struct gt_graph *graph, uint32_t spot, uint32_t by)
{
    size_t i = 0;
    while (i < graph->guesses && (graph->guess[i].spot != spot || graph->guess[i].by != by))
        i++;
    if (i == graph->guesses)
        *GT_ADD(graph->guess, graph->guesses) = (struct gt_guessed){spot, by, 0};
    graph->guess[i].waits++;
}

const char *gt_graph_call_of(const struct gt_graph *graph, const struct gt_lane_step *step)
{
    const struct gt_spot *spot = &graph->spot[step->spot];
    return spot->runs || step->kind == GT_SCHED ? "" : gt_leaf_of(spot->stack);
}

/* Locks --------------------------------------------------------------------------------------- */

bool gt_graph_is_lock_wait(const struct gt_graph *graph, const struct gt_lane_step *step)
{
    if (step->kind != GT_SYNC || step->lock == GT_NOBODY || step->slot)
        return false;
    const struct gt_lock_state *lock = graph->lock[step->lock];
    const struct gt_spot *spot = &graph->spot[step->spot];
    return (step->relocks || spot->locks || (spot->token && lock->holds)) && *lock->name;
}

bool gt_graph_is_idle(const struct gt_graph *graph, const struct gt_lane_step *step)
{
    const struct gt_spot *spot = &graph->spot[step->spot];
    return !spot->takes && gt_is_idle_at(spot->stack, step->kind);
}

bool gt_graph_is_gil_wait(const struct gt_graph *graph, const struct gt_lane_step *step)
{
    return gt_graph_is_lock_wait(graph, step) && gt_lock_is_gil(graph->lock[step->lock]);
}

/* By the names of its threads: "python3.4711/main". */
bool gt_graph_is_of_family(const struct gt_graph *graph)
{
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const char *name = gt_name_or_routine(graph->lane[i].thread), *slash = strrchr(name, '/');
        const char *digit = slash;
        while (digit && digit > name && isdigit((unsigned char)digit[-1]))
            digit--;
        if (digit && digit < slash && digit > name && digit[-1] == '.')
            return true;
    }
    return false;
}

bool gt_graph_knows_channels(const struct gt_graph *graph)
{
    return graph->channels && gt_graph_is_of_family(graph);
}

bool gt_graph_calls(const struct gt_graph *graph, bool (*is)(const char *call))
{
    for (size_t i = 0; i < graph->spots; i++) {
        if (!graph->spot[i].runs && is(gt_leaf_of(graph->spot[i].stack)))
            return true;
    }
    return false;
}

const char *gt_taker_of(const struct gt_graph *graph, uint32_t lock)
{
    const char *found = "";
    uint64_t longest = 0;
    if (gt_lock_is_gil(graph->lock[lock]))
        return found;
    for (size_t i = 0; i < graph->lanes; i++) {
        for (size_t k = 0; k < graph->lane[i].holds; k++) {
            const struct gt_lock_hold *h = &graph->lane[i].hold[k];
            if (h->lock != lock || h->to - h->from <= longest || !*graph->text[h->place])
                continue;
            longest = h->to - h->from;
            found = graph->text[h->place];
        }
    }
    return found;
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

uint64_t gt_lane_held(const struct gt_lane *lane, uint32_t lock, uint64_t from, uint64_t to)
{
    uint64_t ns = 0;
    for (size_t i = gt_lane_hold_after(lane, from); i < lane->holds; i++) {
        const struct gt_lock_hold *h = &lane->hold[i];
        if (h->lock == lock && h->from < to)
            ns += (h->to < to ? h->to : to) - (h->from > from ? h->from : from);
    }
    return ns;
}

const struct gt_lock_hold *gt_lane_next_hold(const struct gt_lane *lane, uint64_t at,
                                             struct gt_hold_walk *walk)
{
    enum { HOLDS_AT_ONCE = 8 };
    if (!walk->end && lane->holds) {
        walk->next = gt_lane_hold_after(lane, at);
        walk->end =
            walk->next + HOLDS_AT_ONCE < lane->holds ? walk->next + HOLDS_AT_ONCE : lane->holds;
    }
    return walk->next < walk->end ? &lane->hold[walk->next++] : NULL;
}

bool gt_graph_is_guard(const struct gt_graph *graph, uint32_t lock)
{
    bool found = false;
    for (size_t i = 0; i < graph->lanes && !found; i++) {
        for (size_t k = 0; k < graph->lane[i].holds && !found; k++)
            found = graph->lane[i].hold[k].once && graph->lane[i].hold[k].lock == lock;
    }
    return found;
}

bool gt_lane_initialises(const struct gt_lane *lane, uint64_t at)
{
    struct gt_hold_walk walk = {0};
    const struct gt_lock_hold *h;
    while ((h = gt_lane_next_hold(lane, at, &walk)) && (!h->once || h->from > at))
        ;
    return h;
}
