/*
 * The rules of v1 files (see validity.h): the records of a file, in which order its events can have
 * happened, and what they do. As Go's readers do it (internal/trace/internal/tracev1: parser.go,
 * order.go; up to Go 1.22 internal/trace). Go 1.5 numbers all events; later there are numbers of
 * what happens to a goroutine.
 */
#include "need.h"
#include "v1_records.h"
#include "validity.h"

#include "encoder/base/queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * From Go 1.11 on: readers of the format want a batch before all else, and end with a panic over a
 * string that is not there.
 */
enum { STRICT = 11 };

enum { RECORD_MAX = 2048, STRING_MAX = 1000000, FRAMES_MAX = 1000 };

enum state { DEAD, RUNNABLE, RUNNING, WAITING };

struct event {
    uint8_t type;
    uint64_t key; /* by which events are in order: time, or Go 1.5's number */
    uint64_t ts, g, arg[GT_V1_ARGS_MAX];
    const uint8_t *start;
};

struct region {
    uint64_t task, name;
};

struct g {
    uint64_t id;
    /* For the order of events. */
    uint64_t seq;
    enum state status;
    uint64_t call;          /* when its last call began to last; 0: none has */
    struct source *waiting; /* whose next events have to wait for something that happens to it */
    /* By what events do. */
    bool exists, assists, timer;
    enum state state;
    struct region *regions;
    size_t n_regions, room_regions;
};

struct piece {
    const uint8_t *start, *end;
    uint64_t ts, seq;
    struct piece *next;
};

/* A P. */
struct source {
    uint64_t id;
    struct piece *first, **last;
    struct gt_bytes bytes;
    const struct piece *piece;
    uint64_t ts, seq, last_g;
    struct event next;
    struct source *next_waiting;
    bool runs, sweeps;
    uint64_t g;
};

/* An end of a call, which was before it is told. */
struct moved {
    struct event event;
    struct source *on;
};

struct check {
    const struct gt_trace *trace;
    struct gt_fault *fault;
    bool by_number; /* Go 1.5 */
    struct gt_memo g, p, tasks, strings;
    struct gt_bytes *stack; /* with strings */
    size_t n_stacks, room_stacks;
    struct g collector; /* the order of collections, as if of a goroutine */
    struct source *samples;
    struct gt_pair *sample; /* times; the second: where they are told, plus 1 */
    size_t n_samples, room_samples, told_samples;
    struct source **source;
    size_t n, room;
    struct gt_queue queue; /* those whose next events can happen */
    size_t waiting;        /* of the others, how many have one */
    struct moved *moved;
    struct gt_pair *moved_order;
    size_t n_moved, room_moved, told_moved;
    bool moves; /* some ends of calls are told late */
    bool collects, stops, frequency;
    uint64_t last_ts, next_key; /* next_key: Go 1.5: at least */
};

#define WRONG(...) gt_fault_note(c->fault, __VA_ARGS__)

static bool wrong_at(struct check *c, const struct source *s, const struct event *e)
{
    c->fault->offset = (uint64_t)(e->start - c->trace->base);
    c->fault->event = gt_trace_kind(c->trace->format, e->type);
    c->fault->stream = s == c->samples ? GT_NO_THREAD : s->id;
    return false;
}

/* Who is known -------------------------------------------------------------------------------- */

static struct g *g_of(struct check *c, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->g, id));
    if (!*slot) {
        struct g *g = gt_need(calloc(1, sizeof *g));
        g->id = id;
        g->exists = !id;
        g->state = id ? DEAD : RUNNING;
        *slot = (uintptr_t)g;
    }
    return (void *)(uintptr_t)*slot;
}

static struct source *add_source(struct check *c, uint64_t id)
{
    struct source *s = gt_need(calloc(1, sizeof *s));
    s->id = id;
    s->last = &s->first;
    c->source = gt_need_room(c->source, c->n, &c->room, sizeof(void *));
    c->source[c->n++] = s;
    return s;
}

static struct source *source_of(struct check *c, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->p, id));
    if (!*slot)
        *slot = (uintptr_t)add_source(c, id);
    return (void *)(uintptr_t)*slot;
}

/* Records ------------------------------------------------------------------------------------- */

/* How many arguments follow the time, and number, of an event; -1: there is none such. */
static int args_of(const struct gt_format *format, uint8_t type)
{
    static const struct {
        uint8_t type, since;
        int8_t args;
    } of_go[] = {
        {GT_V1_GO_STOP, 5, 1}, {GT_V1_FUTILE_WAKEUP, 5, 0}, {GT_V1_GO_SYS_EXIT_LOCAL, 7, 2}};
    int n = 0;
    for (size_t i = 0; i < sizeof of_go / sizeof *of_go; i++) {
        if (of_go[i].type == type)
            return of_go[i].since <= format->minor ? of_go[i].args : -1;
    }
    if (type >= GT_V1_EVENTS_END || !gt_v1_has(format, type))
        return -1;
    for (int i = 0; i < GT_V1_ARGS_MAX; i++)
        n += gt_v1_events[type].arg[i] && gt_v1_events[type].arg[i] <= format->minor;
    return n;
}

static size_t count_args(struct gt_bytes args)
{
    size_t n = 0;
    for (; gt_bytes_left(&args); n++)
        gt_get_varint(&args);
    return args.bad ? SIZE_MAX : n;
}

static bool read_string(struct check *c, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    uint64_t id = gt_get_varint(&args), length = gt_get_varint(&args);
    if (c->by_number)
        return WRONG("there are no strings in %s", c->trace->format->name);
    uint64_t *slot = id ? gt_need(gt_memo_at(&c->strings, id)) : NULL;
    if (!slot || *slot)
        return WRONG(slot ? "two strings have the id %" PRIu64 : "strings have the id %" PRIu64,
                     id);
    if (id > INT64_MAX && c->trace->format->minor >= STRICT)
        return WRONG("a string has the id %" PRIu64 ", and readers need higher ones", id);
    *slot = 1;
    return (length && length <= STRING_MAX) ||
           WRONG("string %" PRIu64 " has %" PRIu64 " bytes", id, length);
}

static bool read_stack(struct check *c, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    gt_get_varint(&args);
    uint64_t n = gt_get_varint(&args), each = c->by_number ? 1 : 4;
    if (n > FRAMES_MAX)
        return WRONG("a stack has %" PRIu64 " frames, more than %d", n, FRAMES_MAX);
    if (count_args(record->args) != 2 + n * each)
        return WRONG("a stack is not whole");
    if (n && c->trace->format->minor >= STRICT) {
        c->stack = gt_need_room(c->stack, c->n_stacks, &c->room_stacks, sizeof *c->stack);
        c->stack[c->n_stacks++] = record->args;
    }
    return true;
}

static bool has_string(struct check *c, uint64_t id)
{
    return !id || c->trace->format->minor < STRICT || gt_memo_find(&c->strings, id) ||
           WRONG("string %" PRIu64 " is not there", id);
}

/* Strings may follow. One with the id 0 is none, and not looked at. */
static bool check_frames(struct check *c)
{
    for (size_t i = 0; i < c->n_stacks; i++) {
        struct gt_bytes args = c->stack[i];
        uint64_t id = gt_get_varint(&args), n = gt_get_varint(&args);
        c->fault->offset = (uint64_t)(c->stack[i].p - c->trace->base);
        for (; id && n; n--) {
            gt_get_varint(&args);
            if (!has_string(c, gt_get_varint(&args)) || !has_string(c, gt_get_varint(&args)))
                return false;
            gt_get_varint(&args);
        }
    }
    return true;
}

static bool read_frequency(struct check *c, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    int64_t hz = (int64_t)gt_get_varint(&args);
    c->frequency = true;
    return hz > 0 || WRONG("the frequency is %" PRId64, hz);
}

/* Whether an argument has one of the values that there are. */
static bool check_values(struct check *c, uint8_t type, struct gt_bytes args)
{
    const struct gt_format *format = c->trace->format;
    uint64_t kinds = format->v1_marking ? GT_V1_STW_KINDS : 2;
    gt_get_varint(&args);
    uint64_t first = gt_get_varint(&args);
    if (type == GT_V1_STW_START && format->minor >= 10 && first >= kinds)
        return WRONG("the world stops for a reason of the number %" PRIu64, first);
    return true;
}

static void keep_sample(struct check *c, const struct gt_v1_record *record, const uint8_t *start)
{
    struct gt_bytes args = record->args;
    gt_get_varint(&args);
    c->sample = gt_need_room(c->sample, c->n_samples, &c->room_samples, sizeof *c->sample);
    c->sample[c->n_samples++] =
        (struct gt_pair){gt_get_varint(&args), (uint64_t)(start - c->trace->base)};
}

/* Whether the end of a call was before it is told; ts: when that is. */
static bool is_moved(const struct gt_v1_record *record, uint64_t ts)
{
    struct gt_bytes args = record->args;
    if (record->type != GT_V1_GO_SYS_EXIT)
        return false;
    for (int i = 0; i < 3; i++)
        gt_get_varint(&args);
    uint64_t real = gt_get_varint(&args);
    return real && real != ts;
}

static bool read_event(struct check *c, const struct gt_v1_record *record, const uint8_t *start,
                       uint64_t *ts)
{
    struct gt_bytes args = record->args;
    int n = args_of(c->trace->format, record->type);
    if (n < 0)
        return WRONG("there is no event of type %u in %s", record->type, c->trace->format->name);
    if (count_args(record->args) != (size_t)n + 1 + c->by_number)
        return WRONG("%s has a wrong number of arguments",
                     gt_trace_kind(c->trace->format, record->type));
    if (gt_bytes_left(&record->value) > STRING_MAX)
        return WRONG("a text has %zu bytes", gt_bytes_left(&record->value));
    if (record->type == GT_V1_CPU_SAMPLE) {
        keep_sample(c, record, start);
        return true;
    }
    if (c->by_number)
        gt_get_varint(&args);
    *ts += gt_get_varint(&args);
    c->moves |= !c->by_number && is_moved(record, *ts);
    return check_values(c, record->type, record->args);
}

static struct piece *read_batch(struct check *c, const struct gt_v1_record *record,
                                const uint8_t *end)
{
    struct gt_bytes args = record->args;
    uint64_t p = gt_get_varint(&args);
    struct piece *piece = gt_need(calloc(1, sizeof *piece));
    struct source *s = source_of(c, p);
    piece->seq = c->by_number ? gt_get_varint(&args) : 0;
    piece->ts = gt_get_varint(&args);
    piece->start = piece->end = end;
    *s->last = piece;
    s->last = &piece->next;
    return piece;
}

static bool check_batch(struct check *c, const struct gt_v1_record *record, uint8_t first)
{
    struct gt_bytes args = record->args;
    uint64_t p = gt_get_varint(&args), seq = c->by_number ? gt_get_varint(&args) : 0;
    if (first >> 6 != 1)
        return WRONG("a batch has a wrong number of arguments");
    if (seq > INT64_MAX || gt_get_varint(&args) > INT64_MAX)
        return WRONG("a batch has a time of more than 63 bits");
    return p == UINT64_MAX || p <= INT32_MAX || WRONG("a batch is of P %" PRIu64, p);
}

/* A table's record, or an event's. */
static bool read_record(struct check *c, const struct gt_v1_record *record, const uint8_t *start,
                        uint64_t *ts)
{
    bool of_one = record->type == GT_V1_FREQUENCY || record->type == GT_V1_TIMER_GOROUTINE;
    bool prefixed = *start >> 6 == 3 && record->type != GT_V1_STRING;
    if (prefixed && gt_bytes_left(&record->args) > RECORD_MAX)
        return WRONG("a record has %zu bytes, more than %d", gt_bytes_left(&record->args),
                     RECORD_MAX);
    if (of_one && count_args(record->args) != 1u + c->by_number)
        return WRONG("%s has a wrong number of arguments",
                     gt_trace_kind(c->trace->format, record->type));
    struct gt_bytes args = record->args;
    switch (record->type) {
    case GT_V1_STRING: return read_string(c, record);
    case GT_V1_STACK: return read_stack(c, record);
    case GT_V1_FREQUENCY: return read_frequency(c, record);
    case GT_V1_TIMER_GOROUTINE: g_of(c, gt_get_varint(&args))->timer = true; return true;
    default: return read_event(c, record, start, ts);
    }
}

/* All records, one after the other: whether each is sound, and which bytes are of which P. */
static bool read_records(struct check *c)
{
    const struct gt_trace *t = c->trace;
    struct gt_bytes bytes = {t->base + GT_HEADER_BYTES, t->base + t->size, false};
    struct gt_v1_record record;
    struct piece *piece = NULL;
    uint64_t ts = 0;
    while (gt_bytes_left(&bytes)) {
        const uint8_t *start = bytes.p;
        c->fault->offset = (uint64_t)(start - t->base);
        if (!gt_v1_record_next(&bytes, t->format, &record)) {
            c->fault->cut = true;
            return WRONG("the file ends in the middle of an event");
        }
        if (record.type == GT_V1_BATCH) {
            if (!check_batch(c, &record, *start))
                return false;
            piece = read_batch(c, &record, bytes.p);
            ts = piece->ts;
        } else if (!piece && record.type != GT_V1_STRING && t->format->minor >= STRICT) {
            return WRONG("an event stands before the first batch");
        } else if (!read_record(c, &record, start, &ts)) {
            return false;
        }
        if (piece)
            piece->end = bytes.p;
    }
    if (!c->n)
        return WRONG("there is nothing in it");
    return check_frames(c) && (c->frequency || WRONG("there is no frequency in it"));
}

/* Events of a P ------------------------------------------------------------------------------- */

/* Which goroutine it is of. */
static void attribute(struct source *s, struct event *e)
{
    e->g = s->last_g;
    switch (e->type) {
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: e->g = s->last_g = e->arg[0]; break;
    case GT_V1_GO_END:
    case GT_V1_GO_STOP:
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT:
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SEND:
    case GT_V1_GO_BLOCK_RECV:
    case GT_V1_GO_BLOCK_SELECT:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET:
    case GT_V1_GO_BLOCK_GC:
    case GT_V1_GO_SYS_BLOCK: s->last_g = 0; break;
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: e->g = e->arg[0]; break;
    default: break;
    }
}

static bool next_sample(struct check *c, struct source *s)
{
    if (c->told_samples == c->n_samples)
        return false;
    const struct gt_pair *sample = &c->sample[c->told_samples++];
    s->next = (struct event){.type = GT_V1_CPU_SAMPLE,
                             .key = sample->key,
                             .ts = sample->key,
                             .start = c->trace->base + sample->value};
    return true;
}

/* Fills s->next; false: there is no more. */
static bool next_event(struct check *c, struct source *s)
{
    struct gt_v1_record record;
    struct event *e = &s->next;
    if (s == c->samples)
        return next_sample(c, s);
    do {
        while (!gt_bytes_left(&s->bytes)) {
            const struct piece *piece = s->piece;
            if (!piece)
                return false;
            s->piece = piece->next;
            s->bytes = (struct gt_bytes){piece->start, piece->end, false};
            s->ts = piece->ts;
            s->seq = piece->seq;
        }
        e->start = s->bytes.p;
        gt_v1_record_next(&s->bytes, c->trace->format, &record);
    } while (gt_v1_is_table(record.type) || record.type == GT_V1_CPU_SAMPLE);
    e->type = record.type;
    s->seq += c->by_number ? gt_get_varint(&record.args) : 0;
    s->ts += gt_get_varint(&record.args);
    memset(e->arg, 0, sizeof e->arg);
    for (int i = 0; i < GT_V1_ARGS_MAX && gt_bytes_left(&record.args); i++)
        e->arg[i] = gt_get_varint(&record.args);
    e->ts = s->ts;
    e->key = c->by_number ? s->seq : s->ts;
    attribute(s, e);
    return true;
}

/* What events do ------------------------------------------------------------------------------ */

static bool runs(struct check *c, const struct source *s, const struct event *e, bool anybody)
{
    const struct g *g = g_of(c, e->g);
    if (g->state != RUNNING)
        return WRONG("goroutine %" PRIu64 " does not run", e->g);
    if (s->g != e->g)
        return WRONG("its P runs goroutine %" PRIu64 ", not %" PRIu64, s->g, e->g);
    return anybody || e->g || WRONG("no goroutine runs there");
}

static bool leave(struct check *c, struct source *s, const struct event *e, enum state state)
{
    struct g *g = g_of(c, e->g);
    if (!runs(c, s, e, false))
        return false;
    g->state = state;
    if (e->type == GT_V1_GO_END)
        g->n_regions = 0;
    s->g = 0;
    return true;
}

static bool start(struct check *c, struct source *s, const struct event *e)
{
    struct g *g = g_of(c, e->g);
    if (g->state != RUNNABLE)
        return WRONG("goroutine %" PRIu64 " starts, and is not runnable", e->g);
    if (s->g)
        return WRONG("goroutine %" PRIu64 " starts, and its P runs goroutine %" PRIu64, e->g, s->g);
    g->state = RUNNING;
    s->g = e->g;
    return true;
}

static bool create(struct check *c, const struct source *s, const struct event *e)
{
    struct g *g = g_of(c, e->arg[0]);
    if (!runs(c, s, e, true))
        return false;
    if (g->exists)
        return WRONG("goroutine %" PRIu64 " is created, and exists already", g->id);
    g->exists = true;
    g->state = RUNNABLE;
    return true;
}

static bool unblock(struct check *c, const struct source *s, const struct event *e)
{
    const struct g *by = g_of(c, e->g);
    struct g *g = g_of(c, e->arg[0]);
    if (by->state != RUNNING)
        return WRONG("goroutine %" PRIu64 " ends a wait, and does not run", e->g);
    if (!by->timer && s->g != e->g)
        return WRONG("its P runs goroutine %" PRIu64 ", not %" PRIu64, s->g, e->g);
    if (g->state != WAITING)
        return WRONG("goroutine %" PRIu64 " does not wait", g->id);
    g->state = RUNNABLE;
    return true;
}

/* It was there when recording began; or its call ends. */
static bool become(struct check *c, const struct event *e, enum state from, enum state to)
{
    struct g *g = g_of(c, e->g);
    if (g->state != from)
        return WRONG("goroutine %" PRIu64 " is not %s", e->g,
                     from == RUNNABLE ? "runnable" : "in a call that lasts");
    g->state = to;
    return true;
}

static bool run_p(struct check *c, struct source *s, bool starts)
{
    if (s->runs == starts)
        return WRONG(starts ? "its P runs already" : "its P does not run");
    if (!starts && s->g)
        return WRONG("its P stops, and runs goroutine %" PRIu64, s->g);
    s->runs = starts;
    return true;
}

static bool open_range(struct check *c, bool *open, bool begins, const char *what)
{
    if (*open == begins)
        return WRONG(begins ? "%s begins, and is under way" : "%s ends, and has not begun", what);
    *open = begins;
    return true;
}

static bool assist(struct check *c, const struct event *e)
{
    struct g *g = g_of(c, e->g);
    bool begins = e->type == GT_V1_GC_MARK_ASSIST_START;
    if (begins && g->assists)
        return WRONG("an assist begins, and is under way");
    g->assists = begins;
    g->exists = true;
    return true;
}

static bool region(struct check *c, const struct event *e)
{
    struct g *g = g_of(c, e->g);
    struct region its = {e->arg[0], e->arg[2]};
    if (e->arg[1] > 1)
        return WRONG("a region neither begins nor ends");
    if (!e->arg[1]) {
        g->regions = gt_need_room(g->regions, g->n_regions, &g->room_regions, sizeof its);
        g->regions[g->n_regions++] = its;
        return true;
    }
    if (!g->n_regions)
        return true; /* it may have begun before */
    const struct region *inner = &g->regions[g->n_regions - 1];
    if (inner->task != its.task || inner->name != its.name)
        return WRONG("goroutine %" PRIu64 " ends a region that is not its innermost one", e->g);
    g->n_regions--;
    return true;
}

static bool task(struct check *c, const struct event *e)
{
    enum { OPEN = 1, ENDED };
    uint64_t *slot = gt_need(gt_memo_at(&c->tasks, e->arg[0]));
    bool begins = e->type == GT_V1_USER_TASK_CREATE;
    if (begins && *slot == OPEN)
        return WRONG("task %" PRIu64 " begins, and has begun already", e->arg[0]);
    *slot = begins ? OPEN : ENDED;
    return true;
}

/* By its place among the arguments: what it is called, or of what kind it is. */
static bool has_texts(struct check *c, const struct event *e)
{
    switch (e->type) {
    case GT_V1_GO_START_LABEL:
    case GT_V1_USER_TASK_CREATE:
    case GT_V1_USER_REGION: return has_string(c, e->arg[2]);
    case GT_V1_USER_LOG: return has_string(c, e->arg[1]);
    default: return true;
    }
}

static bool happens(struct check *c, struct source *s, const struct event *e)
{
    if (!has_texts(c, e))
        return false;
    switch (e->type) {
    case GT_V1_PROC_START: return run_p(c, s, true);
    case GT_V1_PROC_STOP: return run_p(c, s, false);
    case GT_V1_GC_START: return open_range(c, &c->collects, true, "a collection");
    case GT_V1_GC_DONE: return open_range(c, &c->collects, false, "a collection");
    case GT_V1_STW_START: return open_range(c, &c->stops, true, "a stop of the world");
    case GT_V1_STW_DONE: return open_range(c, &c->stops, false, "a stop of the world");
    case GT_V1_GC_SWEEP_START: return open_range(c, &s->sweeps, true, "sweeping");
    case GT_V1_GC_SWEEP_DONE: return open_range(c, &s->sweeps, false, "sweeping");
    case GT_V1_GC_MARK_ASSIST_START:
    case GT_V1_GC_MARK_ASSIST_DONE: return assist(c, e);
    case GT_V1_GO_CREATE: return create(c, s, e);
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: return become(c, e, RUNNABLE, WAITING);
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_SYS_EXIT_LOCAL: return become(c, e, WAITING, RUNNABLE);
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: return start(c, s, e);
    case GT_V1_GO_END:
    case GT_V1_GO_STOP: return leave(c, s, e, DEAD);
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT: return leave(c, s, e, RUNNABLE);
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SEND:
    case GT_V1_GO_BLOCK_RECV:
    case GT_V1_GO_BLOCK_SELECT:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET:
    case GT_V1_GO_BLOCK_GC:
    case GT_V1_GO_SYS_BLOCK: return leave(c, s, e, WAITING);
    case GT_V1_GO_SYS_CALL: return runs(c, s, e, false);
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_UNBLOCK_LOCAL: return unblock(c, s, e);
    case GT_V1_USER_TASK_CREATE:
    case GT_V1_USER_TASK_END: return task(c, e);
    case GT_V1_USER_REGION: return region(c, e);
    default: return true;
    }
}

/* In which order ------------------------------------------------------------------------------ */

#define ANY UINT64_MAX /* number of whatever is next */

/* When an event can happen, and what is then. */
struct change {
    struct g *g; /* NULL: whenever */
    uint64_t seq;
    enum state from, to;
};

static struct change change_of(struct check *c, const struct event *e)
{
    switch (e->type) {
    case GT_V1_GO_CREATE: return (struct change){g_of(c, e->arg[0]), 0, DEAD, RUNNABLE};
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: return (struct change){g_of(c, e->g), 1, RUNNABLE, WAITING};
    case GT_V1_GO_START:
    case GT_V1_GO_START_LABEL: return (struct change){g_of(c, e->g), e->arg[1], RUNNABLE, RUNNING};
    case GT_V1_GO_START_LOCAL: return (struct change){g_of(c, e->g), ANY, RUNNABLE, RUNNING};
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SEND:
    case GT_V1_GO_BLOCK_RECV:
    case GT_V1_GO_BLOCK_SELECT:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET:
    case GT_V1_GO_BLOCK_GC:
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_SYS_BLOCK: return (struct change){g_of(c, e->g), ANY, RUNNING, WAITING};
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT: return (struct change){g_of(c, e->g), ANY, RUNNING, RUNNABLE};
    case GT_V1_GO_UNBLOCK:
    case GT_V1_GO_SYS_EXIT:
        return (struct change){g_of(c, e->arg[0]), e->arg[1], WAITING, RUNNABLE};
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT_LOCAL:
        return (struct change){g_of(c, e->arg[0]), ANY, WAITING, RUNNABLE};
    case GT_V1_GC_START: return (struct change){&c->collector, e->arg[0], DEAD, DEAD};
    default: return (struct change){.g = NULL};
    }
}

static bool is_ready(const struct change *by)
{
    return !by->g || ((by->seq == ANY || by->seq == by->g->seq) && by->from == by->g->status);
}

/* Whose next event is there: it can happen, or waits for something that its goroutine does. */
static void queue_up(struct check *c, struct source *s)
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

static void look_again(struct check *c, struct g *g)
{
    struct source *s = g->waiting, *next;
    for (g->waiting = NULL; s; s = next) {
        next = s->next_waiting;
        c->waiting--;
        queue_up(c, s);
    }
}

/* What only counts as next, or does not count, leaves the number as it is, or adds one. */
static uint64_t number_after(const struct event *e, const struct change *by)
{
    switch (e->type) {
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_UNBLOCK_LOCAL:
    case GT_V1_GO_SYS_EXIT_LOCAL: return by->g->seq + 1;
    default: return by->seq == ANY ? by->g->seq : by->seq + 1;
    }
}

/* The end of a call has a time of its own, after that when it began to last. */
static bool check_exit(struct check *c, struct source *s, const struct event *e)
{
    struct g *g = g_of(c, e->g);
    if (e->type == GT_V1_GO_SYS_BLOCK || e->type == GT_V1_GO_IN_SYSCALL)
        g->call = e->ts;
    if (e->type != GT_V1_GO_SYS_EXIT || !e->arg[2])
        return true;
    if (!g->call)
        return WRONG("a call ends that has not begun");
    if (e->arg[2] < g->call)
        return WRONG("a call ends before it begins");
    if (c->moves && e->arg[2] != e->ts) {
        c->moved = gt_need_room(c->moved, c->n_moved, &c->room_moved, sizeof *c->moved);
        c->moved[c->n_moved] = (struct moved){*e, s};
        c->moved[c->n_moved++].event.ts = e->arg[2];
    }
    return true;
}

typedef bool each_fn(struct check *c, struct source *s, const struct event *e);

/* An event has its turn. */
static bool take(struct check *c, struct source *s, each_fn *each)
{
    struct event e = s->next;
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
    if (next_event(c, s))
        queue_up(c, s);
    if (by.g)
        look_again(c, by.g);
    return true;
}

static bool is_stuck(struct check *c)
{
    for (size_t i = 0; i < c->g.capacity; i++) {
        const struct g *g = (void *)(uintptr_t)c->g.slots[i].value;
        if (!g || !g->waiting)
            continue;
        wrong_at(c, g->waiting, &g->waiting->next);
        return WRONG("goroutine %" PRIu64 " is never in the state for that", g->id);
    }
    wrong_at(c, c->collector.waiting, &c->collector.waiting->next);
    return WRONG("a collection is not the next one");
}

/* All events in order. Begins anew each time. */
static bool run(struct check *c, each_fn *each)
{
    c->queue =
        (struct gt_queue){gt_need(realloc(c->queue.at, (c->n + 1) * sizeof(struct gt_pair))), 0};
    c->last_ts = c->told_samples = c->waiting = 0;
    for (size_t i = 0; i < c->g.capacity; i++) {
        struct g *g = (void *)(uintptr_t)c->g.slots[i].value;
        if (g) {
            g->seq = 0;
            g->status = DEAD;
            g->waiting = NULL;
        }
    }
    c->collector = (struct g){0};
    for (size_t i = 0; i < c->n; i++) {
        struct source *s = c->source[i];
        s->piece = s->first;
        s->bytes = (struct gt_bytes){0};
        s->last_g = 0;
        if (next_event(c, s))
            queue_up(c, s);
    }
    while (c->queue.n) {
        struct source *s = (void *)(uintptr_t)gt_queue_pop(&c->queue);
        if (!take(c, s, each))
            return false;
    }
    return !c->waiting || is_stuck(c);
}

/* What is done with each ---------------------------------------------------------------------- */

static bool check_all(struct check *c, struct source *s, const struct event *e)
{
    return check_exit(c, s, e) && happens(c, s, e);
}

/* Those that were before that time. */
static bool move_in(struct check *c, uint64_t ts)
{
    while (c->told_moved < c->n_moved && c->moved_order[c->told_moved].key < ts) {
        const struct moved *m = &c->moved[c->moved_order[c->told_moved++].value];
        if (!happens(c, m->on, &m->event))
            return false;
    }
    return true;
}

static bool check_moved(struct check *c, struct source *s, const struct event *e)
{
    bool moved = e->type == GT_V1_GO_SYS_EXIT && e->arg[2] && e->arg[2] != e->ts;
    return move_in(c, e->ts) && (moved || happens(c, s, e));
}

/* Twice: in the order in which they are told, and in that in which they were. */
static bool run_moved(struct check *c)
{
    if (!run(c, check_exit))
        return false;
    c->moved_order = gt_need(calloc(c->n_moved + 1, sizeof *c->moved_order));
    for (size_t i = 0; i < c->n_moved; i++)
        c->moved_order[i] = (struct gt_pair){c->moved[i].event.ts, i};
    gt_need(gt_sort(c->moved_order, c->n_moved) ? c->moved_order : NULL);
    return run(c, check_moved) && move_in(c, UINT64_MAX);
}

/* Go 1.5: the end of a call has a number of its own, by which it comes before others of its P. */
static bool keep_exit(struct check *c, struct source *s, const struct event *e)
{
    if (e->type != GT_V1_GO_SYS_EXIT)
        return true;
    c->moved = gt_need_room(c->moved, c->n_moved, &c->room_moved, sizeof *c->moved);
    c->moved[c->n_moved] = (struct moved){*e, s};
    struct event *its = &c->moved[c->n_moved++].event;
    its->key = e->arg[1];
    its->ts = e->arg[2] ? e->arg[2] : e->ts;
    return true;
}

/* Two of one number are in no order. */
static bool in_time(struct check *c, struct source *s, const struct event *e)
{
    bool good = e->key >= c->next_key || WRONG("two events have the number %" PRIu64, e->key);
    if (e->ts < c->last_ts)
        good = WRONG("its time is before that of what comes before");
    c->next_key = e->key + 1;
    c->last_ts = e->ts;
    return (good && happens(c, s, e)) || wrong_at(c, s, e);
}

static bool run_by_number(struct check *c)
{
    struct gt_queue *q = &c->queue;
    *q = (struct gt_queue){gt_need(calloc(c->n + 1, sizeof *q->at)), 0};
    for (size_t i = 0; i < c->n; i++) {
        struct source *s = c->source[i];
        s->piece = s->first;
        while (next_event(c, s))
            keep_exit(c, s, &s->next);
        s->piece = s->first;
        s->last_g = 0;
        if (next_event(c, s))
            queue_up(c, s);
    }
    c->moved_order = gt_need(calloc(c->n_moved + 1, sizeof *c->moved_order));
    for (size_t i = 0; i < c->n_moved; i++)
        c->moved_order[i] = (struct gt_pair){c->moved[i].event.key, i};
    gt_need(gt_sort(c->moved_order, c->n_moved) ? c->moved_order : NULL);
    while (q->n) {
        struct source *s = (void *)(uintptr_t)gt_queue_pop(q);
        struct event e = s->next;
        while (c->told_moved < c->n_moved && c->moved_order[c->told_moved].key < e.key) {
            const struct moved *m = &c->moved[c->moved_order[c->told_moved++].value];
            if (!in_time(c, m->on, &m->event))
                return false;
        }
        if (e.type != GT_V1_GO_SYS_EXIT && !in_time(c, s, &e))
            return false;
        if (next_event(c, s))
            queue_up(c, s);
    }
    return true;
}

static void free_all(struct check *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (struct piece *p = c->source[i]->first, *next; p; p = next) {
            next = p->next;
            free(p);
        }
        free(c->source[i]);
    }
    for (size_t i = 0; i < c->g.capacity; i++) {
        struct g *g = (void *)(uintptr_t)c->g.slots[i].value;
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
    struct check c = {
        .trace = trace, .fault = fault, .by_number = gt_v1_global_order(trace->format)};
    bool good = read_records(&c);
    if (good && c.n_samples) {
        gt_need(gt_sort(c.sample, c.n_samples) ? c.sample : NULL);
        c.samples = add_source(&c, 0);
    }
    if (good)
        good = c.by_number ? run_by_number(&c) : c.moves ? run_moved(&c) : run(&c, check_all);
    free_all(&c);
    return good;
}
