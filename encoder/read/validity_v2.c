/*
 * The rules of v2 files (see validity.h), but for what events do (validity_rules.h): the
 * generations of a file, their tables, and which thread's event comes next. As in Go's reader
 * (internal/trace: reader.go, generation.go, batch.go, batchcursor.go).
 */
#include "batches.h"
#include "need.h"
#include "validity_rules.h"

#include "encoder/base/queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ids from here on are not kept in an array: texts of programs have large ids. */
enum { DENSE = 1 << 16 };

/* The events of a thread in one batch. */
struct piece {
    const uint8_t *start, *end;
    uint64_t ts;
    size_t next; /* number of the thread's next piece; 0: none */
};

/* The first frame with a PC. Its names are looked up when all strings are known. */
struct frame {
    uint64_t func, file;
    const uint8_t *at;
};

struct check {
    struct gt_rules rules;
    const struct gt_trace *trace;
    struct gt_fault *fault;
    struct gt_bytes rest;
    uint64_t after;      /* the number of the generation before */
    uint64_t round;      /* how many generations were begun */
    struct gt_fault end; /* the file is cut: reported if nothing else is wrong */
    /* Of the generation: */
    struct piece *piece; /* from 1 on */
    size_t n_pieces;
    struct gt_rule_m **thread;
    size_t n_threads;
    struct frame *frame;
    size_t n_frames;
    struct gt_memo pcs;
    struct gt_queue queue; /* threads, by the time of their next event */
    double scale;          /* ns in a unit of the clock; 0: not known */
    bool snapshot;
};

static const uint8_t *place(struct check *c, const uint8_t *at)
{
    c->fault->offset = (uint64_t)(at - c->trace->base);
    return at;
}

#define WRONG(...) gt_fault_note(c->fault, __VA_ARGS__)

/* Tables ------------------------------------------------------------------------------------- */

static uint64_t *id_slot(struct gt_ids *ids, uint64_t id)
{
    if (id >= DENSE)
        return gt_need(gt_memo_at(&ids->others, id));
    ids->dense = gt_need_zeros(ids->dense, &ids->room, id, sizeof *ids->dense);
    return &ids->dense[id];
}

static void forget_ids(struct gt_ids *ids)
{
    if (ids->room)
        memset(ids->dense, 0, ids->room * sizeof *ids->dense);
    gt_memo_free(&ids->others);
}

/* Enters an id, whose string or stack is at `at`. false: the id is 0, or not new. */
static bool define(struct check *c, struct gt_ids *ids, uint64_t id, const uint8_t *at,
                   const char *what)
{
    uint64_t *slot = id ? id_slot(ids, id) : NULL;
    if (!slot || *slot)
        return WRONG(slot ? "two %s have the id %" PRIu64 : "%s have the id %" PRIu64, what, id);
    *slot = (uint64_t)(at - c->trace->base) + 1;
    return true;
}

static bool read_strings(struct check *c, struct gt_bytes data)
{
    gt_get_byte(&data);
    while (gt_bytes_left(&data)) {
        if (gt_get_byte(&data) != GT_EV_STRING)
            return WRONG("a batch of strings has something else");
        uint64_t id = gt_get_varint(&data);
        const uint8_t *at = data.p;
        uint64_t length = gt_get_varint(&data);
        if (!data.bad && length > GT_STRING_MAX)
            return WRONG("string %" PRIu64 " has %" PRIu64 " bytes, more than %d", id, length,
                         GT_STRING_MAX);
        gt_get_part(&data, length);
        if (data.bad)
            return WRONG("string %" PRIu64 " is not whole", id);
        if (!define(c, &c->rules.strings, id, at, "strings"))
            return false;
    }
    return true;
}

static void keep_frame(struct check *c, uint64_t pc, struct frame frame)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->pcs, pc));
    if (*slot)
        return;
    *slot = 1;
    *GT_ADD(c->frame, c->n_frames) = frame;
}

static bool read_stacks(struct check *c, struct gt_bytes data)
{
    gt_get_byte(&data);
    while (gt_bytes_left(&data)) {
        const uint8_t *at = data.p;
        if (gt_get_byte(&data) != GT_EV_STACK)
            return WRONG("a batch of stacks has something else");
        uint64_t id = gt_get_varint(&data), n = gt_get_varint(&data);
        if (!data.bad && n > GT_FRAMES_MAX)
            return WRONG("stack %" PRIu64 " has %" PRIu64 " frames, more than %d", id, n,
                         GT_FRAMES_MAX);
        for (uint64_t i = 0; i < n && !data.bad; i++) {
            uint64_t pc = gt_get_varint(&data), func = gt_get_varint(&data);
            keep_frame(c, pc, (struct frame){func, gt_get_varint(&data), at});
            gt_get_varint(&data);
        }
        if (data.bad)
            return WRONG("stack %" PRIu64 " is not whole", id);
        if (!define(c, &c->rules.stacks, id, at, "stacks"))
            return false;
    }
    return true;
}

static bool check_frames(struct check *c)
{
    for (size_t i = 0; i < c->n_frames; i++) {
        uint64_t names[] = {c->frame[i].func, c->frame[i].file};
        for (int k = 0; k < 2; k++) {
            if (!names[k] || gt_ids_find(&c->rules.strings, names[k]))
                continue;
            place(c, c->frame[i].at);
            return WRONG("string %" PRIu64 ", of a frame, is not in its generation", names[k]);
        }
    }
    return true;
}

/* Read in a second round, because the stacks of samples may follow them. */
static bool read_samples(struct check *c, struct gt_bytes data)
{
    enum { ARGS = 5 };
    gt_get_byte(&data);
    while (gt_bytes_left(&data)) {
        uint64_t stack = 0;
        if (gt_get_byte(&data) != GT_EV_CPU_SAMPLE)
            return WRONG("a batch of CPU samples has something else");
        for (int i = 0; i < ARGS; i++)
            stack = gt_get_varint(&data);
        if (data.bad)
            return WRONG("a CPU sample is not whole");
        if (stack && !gt_ids_find(&c->rules.stacks, stack))
            return WRONG("stack %" PRIu64 ", of a CPU sample, is not in its generation", stack);
    }
    return true;
}

static bool read_frequency(struct check *c, struct gt_bytes *data)
{
    uint64_t hz = gt_get_varint(data);
    if (c->scale > 0)
        return WRONG("a generation has two frequencies");
    if (!hz)
        return WRONG("the frequency is 0");
    c->scale = 1.0 / ((double)hz / 1e9); /* in this order it equals Go's to the last bit */
    return true;
}

static bool read_snapshot(struct check *c, struct gt_bytes *data)
{
    enum { ARGS = 4 };
    if (c->snapshot)
        return WRONG("a generation has two clock snapshots");
    c->snapshot = true;
    for (int i = 0; i < ARGS; i++)
        gt_get_varint(data);
    return true;
}

static bool read_clock(struct check *c, struct gt_bytes data)
{
    bool its = c->trace->format->snapshot;
    if (its)
        gt_get_byte(&data); /* Sync */
    while (gt_bytes_left(&data)) {
        uint8_t type = gt_get_byte(&data);
        bool good = type == GT_EV_FREQUENCY               ? read_frequency(c, &data)
                    : type == GT_EV_CLOCK_SNAPSHOT && its ? read_snapshot(c, &data)
                                                          : WRONG("a clock has something else");
        if (!good || data.bad)
            return WRONG("a clock is not whole");
    }
    return true;
}

static bool check_clock(struct check *c)
{
    if (!(c->scale > 0))
        return WRONG("a generation has no frequency");
    return c->snapshot || !c->trace->format->snapshot ||
           WRONG("a generation has no clock snapshot");
}

/* Events of a thread -------------------------------------------------------------------------- */

static void keep_events(struct check *c, const struct gt_batch *b)
{
    struct gt_rule_m *m = gt_rule_m(&c->rules, b->thread);
    c->piece = gt_need_more(c->piece, c->n_pieces, sizeof *c->piece);
    c->piece[c->n_pieces] = (struct piece){b->data.p, b->data.end, b->ts, 0};
    if (m->listed != c->round) {
        m->listed = c->round;
        m->first = c->n_pieces;
        *GT_ADD(c->thread, c->n_threads) = m;
    } else {
        c->piece[m->last].next = c->n_pieces;
    }
    m->last = c->n_pieces++;
}

static bool known_type(const struct check *c, uint8_t type)
{
    enum { OF_1_22 = GT_EV_USER_LOG };
    return gt_event_args_of(type) >= 0 && (type <= OF_1_22 || c->trace->format->minor > 22);
}

/* Reads the next event of the piece. Time is added up as in Go, which loses fractions. */
static bool read_event(struct check *c, struct gt_rule_m *m)
{
    struct gt_bytes bytes = m->bytes;
    m->start = bytes.p;
    m->type = gt_get_byte(&bytes);
    int n = known_type(c, m->type) ? gt_event_args_of(m->type) : -1;
    m->time += (int64_t)((double)gt_get_varint(&bytes) * c->scale);
    for (int i = 0; i < n; i++)
        m->arg[i] = gt_get_varint(&bytes);
    m->bytes = bytes;
    if (n >= 0 && !bytes.bad)
        return true;
    place(c, m->start);
    c->fault->stream = m->id;
    return n < 0 ? WRONG("there is no event of type %u in %s", m->type, c->trace->format->name)
                 : WRONG("an event is not whole");
}

enum next { NEXT, NO_MORE, BROKEN };

static enum next next_event(struct check *c, struct gt_rule_m *m)
{
    while (!gt_bytes_left(&m->bytes)) {
        size_t piece = m->first;
        if (!piece)
            return NO_MORE;
        m->bytes = (struct gt_bytes){c->piece[piece].start, c->piece[piece].end, false};
        m->time = (int64_t)((double)c->piece[piece].ts * c->scale);
        m->first = c->piece[piece].next;
    }
    return read_event(c, m) ? NEXT : BROKEN;
}

/* Order of threads ---------------------------------------------------------------------------- */

static struct gt_rule_m *thread_at(const struct check *c, size_t i)
{
    return (void *)(uintptr_t)c->queue.at[i].value;
}

/* Keys keep the order of times, which are signed. */
static struct gt_pair by_time(struct gt_rule_m *m)
{
    return (struct gt_pair){(uint64_t)m->time + (UINT64_C(1) << 63), (uintptr_t)m};
}

static bool push_threads(struct check *c)
{
    c->queue.at = gt_need(realloc(c->queue.at, (c->n_threads + 1) * sizeof *c->queue.at));
    c->queue.n = 0;
    for (size_t i = 0; i < c->n_threads; i++) {
        struct gt_rule_m *m = c->thread[i];
        m->bytes = (struct gt_bytes){0};
        switch (next_event(c, m)) {
        case NEXT: gt_queue_push(&c->queue, by_time(m)); break;
        case BROKEN: return false;
        case NO_MORE: break;
        }
    }
    return true;
}

/* Tries the event of thread i. If it happens, the thread's next event is queued. */
static enum gt_verdict try(struct check *c, size_t i)
{
    struct gt_rule_m *m = thread_at(c, i);
    enum gt_verdict verdict = gt_rule_advance(&c->rules, m);
    if (verdict == GT_NOT_YET)
        return verdict;
    if (verdict == GT_WRONG) {
        place(c, m->start);
        c->fault->stream = m->id;
        c->fault->event = gt_trace_kind(c->trace->format, m->type);
        return verdict;
    }
    switch (next_event(c, m)) {
    case NEXT: gt_queue_replace(&c->queue, i, by_time(m)); break;
    case NO_MORE: gt_queue_remove(&c->queue, i); break;
    case BROKEN: return GT_WRONG;
    }
    return GT_DONE;
}

/* No thread can go on: reports the earliest event. */
static bool is_stuck(struct check *c)
{
    const struct gt_rule_m *m = thread_at(c, 0);
    place(c, m->start);
    c->fault->stream = m->id;
    c->fault->event = gt_trace_kind(c->trace->format, m->type);
    switch (m->type) {
    case GT_EV_PROC_START:
    case GT_EV_PROC_STEAL:
        return WRONG("P %" PRIu64 " is never in the state for that, with sequence number %" PRIu64,
                     m->arg[0], m->arg[1]);
    case GT_EV_GO_START:
    case GT_EV_GO_UNBLOCK:
    case GT_EV_GO_SWITCH:
    case GT_EV_GO_SWITCH_DESTROY:
        return WRONG("goroutine %" PRIu64
                     " is never in the state for that, with sequence number %" PRIu64,
                     m->arg[0], m->arg[1]);
    default: return WRONG("what comes before it is not there");
    }
}

static bool run_events(struct check *c)
{
    if (!push_threads(c))
        return false;
    while (c->queue.n) {
        enum gt_verdict verdict = try(c, 0);
        if (verdict == GT_NOT_YET && !gt_sort(c->queue.at, c->queue.n))
            gt_need(NULL);
        for (size_t i = 1; verdict == GT_NOT_YET && i < c->queue.n; i++)
            verdict = try(c, i);
        if (verdict == GT_NOT_YET)
            return is_stuck(c);
        if (verdict == GT_WRONG)
            return false;
    }
    return true;
}

/* Generations --------------------------------------------------------------------------------- */

static void begin_generation(struct check *c)
{
    c->round++;
    forget_ids(&c->rules.strings);
    forget_ids(&c->rules.stacks);
    gt_memo_free(&c->pcs);
    c->n_pieces = 1;
    c->piece = gt_need_more(c->piece, 0, sizeof *c->piece);
    c->n_threads = c->n_frames = 0;
    c->scale = 0;
    c->snapshot = false;
    c->rules.gen = 0;
}

static bool sort_out(struct check *c, const struct gt_batch *b)
{
    bool clock = b->kind == (c->trace->format->snapshot ? GT_EV_SYNC : GT_EV_FREQUENCY);
    if (clock)
        return read_clock(c, b->data);
    switch (b->kind) {
    case GT_EV_STRINGS: return read_strings(c, b->data);
    case GT_EV_STACKS: return read_stacks(c, b->data);
    case GT_EV_CPU_SAMPLES: return true;
    case GT_EV_EXPERIMENTAL_BATCH:
        return c->trace->format->minor > 22 || WRONG("go1.22 has no experiments");
    default: keep_events(c, b); return true;
    }
}

/*
 * Notes that the file ends at `at`, where it must not. All that was read before is still checked.
 */
static bool is_cut(struct check *c, const uint8_t *at, const char *what)
{
    c->end = *c->fault;
    c->end.cut = true;
    c->end.stream = GT_NO_THREAD;
    c->end.offset = (uint64_t)(at - c->trace->base);
    gt_fault_note(&c->end, "%s", what);
    c->rest.p = c->rest.end;
    return false;
}

/* Reads the next batch; the file has more bytes. */
static bool read_batch(struct check *c, struct gt_batch *b)
{
    const uint8_t *start = place(c, c->rest.p);
    uint8_t type = *start;
    c->fault->stream = GT_NO_THREAD;
    if (type != GT_EV_EVENT_BATCH && type != GT_EV_EXPERIMENTAL_BATCH &&
        !(type == GT_EV_END_OF_GENERATION && c->trace->format->end_marker))
        return WRONG("there is no batch, but %u", type);
    if (!gt_batch_next(&c->rest, b))
        return is_cut(c, start, "the file ends in the middle of a batch");
    c->fault->stream = b->thread;
    if (gt_bytes_left(&b->data) > GT_BATCH_MAX)
        return WRONG("a batch has %zu bytes, more than %d", gt_bytes_left(&b->data), GT_BATCH_MAX);
    return type == GT_EV_END_OF_GENERATION || b->gen || WRONG("a batch is of generation 0");
}

/*
 * Reads a generation, up to its end mark, the beginning of the next one or the end of the file.
 * false: it is wrong.
 */
static bool read_generation(struct check *c)
{
    struct gt_batch b;
    const bool marked = c->trace->format->end_marker;
    begin_generation(c);
    while (gt_bytes_left(&c->rest)) {
        const uint8_t *start = c->rest.p;
        if (!read_batch(c, &b))
            return !*c->fault->what;
        if (b.kind == GT_EV_END_OF_GENERATION)
            return true;
        if (!c->rules.gen && !marked && c->after && b.gen != c->after + 1)
            return WRONG("generation %" PRIu64 " follows generation %" PRIu64, b.gen, c->after);
        c->rules.gen = c->rules.gen ? c->rules.gen : b.gen;
        if (b.gen == c->rules.gen + 1 && !marked) {
            c->rest.p = start;
            return true;
        }
        if (b.gen != c->rules.gen)
            return WRONG("a batch of generation %" PRIu64 " is among those of %" PRIu64, b.gen,
                         c->rules.gen);
        c->fault->generation = b.gen;
        if (!sort_out(c, &b))
            return false;
    }
    if (marked)
        is_cut(c, c->rest.p, "the file ends before a generation does");
    return true;
}

/* Whether the generation is complete. An incomplete one has no clock, or no end mark. */
static bool is_complete(struct check *c)
{
    bool at_end = !gt_bytes_left(&c->rest);
    if (at_end && !(c->scale > 0) && !*c->end.what)
        is_cut(c, c->rest.p, "the file ends before a generation does");
    return !*c->end.what || (c->scale > 0 && !c->trace->format->end_marker);
}

static bool check_samples(struct check *c, const uint8_t *start)
{
    struct gt_bytes bytes = {start, c->rest.p, false};
    struct gt_batch b;
    while (gt_bytes_left(&bytes)) {
        place(c, bytes.p);
        if (gt_batch_next(&bytes, &b) && b.kind == GT_EV_CPU_SAMPLES && !read_samples(c, b.data))
            return false;
    }
    return true;
}

static bool check_generation(struct check *c)
{
    const uint8_t *start = c->rest.p;
    if (!read_generation(c))
        return false;
    c->fault->generation = c->rules.gen;
    c->fault->stream = GT_NO_THREAD;
    place(c, start);
    if (!is_complete(c))
        return true;
    bool good = check_clock(c) && check_frames(c) && check_samples(c, start) && run_events(c);
    c->after = c->rules.gen;
    gt_trace_forget(c->trace, start, c->rest.p);
    return good;
}

bool gt_validity_check_v2(const struct gt_trace *trace, struct gt_fault *fault)
{
    struct check c = {.trace = trace, .fault = fault};
    bool good = true;
    c.rules.fault = fault;
    c.rules.base = trace->base;
    c.rules.end = trace->base + trace->size;
    c.rest = (struct gt_bytes){trace->base + GT_HEADER_BYTES, c.rules.end, false};
    if (!gt_bytes_left(&c.rest) && !trace->format->end_marker)
        good = gt_fault_note(fault, "there is nothing in it");
    while (good && gt_bytes_left(&c.rest))
        good = check_generation(&c);
    if (good && *c.end.what)
        *fault = c.end;
    good &= !*c.end.what;
    gt_rules_free(&c.rules);
    gt_memo_free(&c.pcs);
    free(c.piece);
    free(c.thread);
    free(c.frame);
    free(c.queue.at);
    return good;
}
