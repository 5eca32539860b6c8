/*
 * Reads the records of v1 files, and the events of each P among them (see validity.h). Checks each
 * record, and that its strings and stacks are in the file.
 */
#include "need.h"
#include "v1_records.h"
#include "validity_v1.h"

#include <stdlib.h>
#include <string.h>

/*
 * From Go 1.11 on readers of the format need a batch before all else, and panic over a string that
 * is missing.
 */
enum { STRICT = 11 };

enum { RECORD_MAX = 2048, STRING_MAX = 1000000 };

/*
 * How many frames a stack may have. The reader takes 1,000, but profile pages before Go 1.27 break
 * down over more than 128 (pcsForStack in cmd/trace/pprof.go). Go 1.22's pages, for formats before
 * 1.11, take as many as the reader. A stack with the id 0 is skipped.
 */
static uint64_t frames_max(const struct gt_format *format, uint64_t id)
{
    return id && format->minor >= STRICT ? GT_FRAMES_MAX : 1000;
}

/* Known goroutines and sources ---------------------------------------------------------------- */

struct gt_check_g *gt_check_g_of(struct gt_check_v1 *c, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->g, id));
    if (!*slot) {
        struct gt_check_g *g = gt_need(calloc(1, sizeof *g));
        g->id = id;
        g->exists = !id;
        g->state = id ? GT_CHECK_DEAD : GT_CHECK_RUNNING;
        *slot = (uintptr_t)g;
    }
    return (void *)(uintptr_t)*slot;
}

struct gt_check_source *gt_check_add_source(struct gt_check_v1 *c, uint64_t id)
{
    struct gt_check_source *s = gt_need(calloc(1, sizeof *s));
    s->id = id;
    s->last = &s->first;
    *GT_ADD(c->source, c->n) = s;
    return s;
}

static struct gt_check_source *source_of(struct gt_check_v1 *c, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&c->p, id));
    if (!*slot)
        *slot = (uintptr_t)gt_check_add_source(c, id);
    return (void *)(uintptr_t)*slot;
}

/* Records ------------------------------------------------------------------------------------- */

/* How many arguments follow the time, and number, of an event; -1: the type is unknown. */
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

static bool read_string(struct gt_check_v1 *c, const struct gt_v1_record *record)
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

static bool read_stack(struct gt_check_v1 *c, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    uint64_t id = gt_get_varint(&args), n = gt_get_varint(&args), each = c->by_number ? 1 : 4;
    uint64_t most = frames_max(c->trace->format, id);
    if (n > most)
        return WRONG("a stack has %" PRIu64 " frames, and viewers take %" PRIu64 " at most", n,
                     most);
    if (count_args(record->args) != 2 + n * each)
        return WRONG("a stack is not whole");
    if (n && c->trace->format->minor >= STRICT) {
        *GT_ADD(c->stack, c->n_stacks) = record->args;
    }
    return true;
}

bool gt_check_has_string(struct gt_check_v1 *c, uint64_t id)
{
    return !id || c->trace->format->minor < STRICT || gt_memo_find(&c->strings, id) ||
           WRONG("string %" PRIu64 " is not there", id);
}

/*
 * Checks the strings of all stacks at the end, because strings may follow stacks. A stack with the
 * id 0 is not a stack, and is skipped.
 */
static bool check_frames(struct gt_check_v1 *c)
{
    for (size_t i = 0; i < c->n_stacks; i++) {
        struct gt_bytes args = c->stack[i];
        uint64_t id = gt_get_varint(&args), n = gt_get_varint(&args);
        c->fault->offset = (uint64_t)(c->stack[i].p - c->trace->base);
        for (; id && n; n--) {
            gt_get_varint(&args);
            if (!gt_check_has_string(c, gt_get_varint(&args)) ||
                !gt_check_has_string(c, gt_get_varint(&args)))
                return false;
            gt_get_varint(&args);
        }
    }
    return true;
}

static bool read_frequency(struct gt_check_v1 *c, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    int64_t hz = (int64_t)gt_get_varint(&args);
    c->frequency = true;
    return hz > 0 || WRONG("the frequency is %" PRId64, hz);
}

/* Whether an argument has a valid value. */
static bool check_values(struct gt_check_v1 *c, uint8_t type, struct gt_bytes args)
{
    const struct gt_format *format = c->trace->format;
    uint64_t kinds = format->v1_marking ? GT_V1_STW_KINDS : 2;
    gt_get_varint(&args);
    uint64_t first = gt_get_varint(&args);
    if (type == GT_V1_STW_START && format->minor >= 10 && first >= kinds)
        return WRONG("the world stops for a reason of the number %" PRIu64, first);
    return true;
}

static void keep_sample(struct gt_check_v1 *c, const struct gt_v1_record *record,
                        const uint8_t *start)
{
    struct gt_bytes args = record->args;
    gt_get_varint(&args);
    *GT_ADD(c->sample, c->n_samples) =
        (struct gt_pair){gt_get_varint(&args), (uint64_t)(start - c->trace->base)};
}

/* Whether the end of a call was at another time than its event, which is at ts. */
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

static bool read_event(struct gt_check_v1 *c, const struct gt_v1_record *record,
                       const uint8_t *start, uint64_t *ts)
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

static struct gt_check_piece *read_batch(struct gt_check_v1 *c, const struct gt_v1_record *record,
                                         const uint8_t *end)
{
    struct gt_bytes args = record->args;
    uint64_t p = gt_get_varint(&args);
    struct gt_check_piece *piece = gt_need(calloc(1, sizeof *piece));
    struct gt_check_source *s = source_of(c, p);
    piece->seq = c->by_number ? gt_get_varint(&args) : 0;
    piece->ts = gt_get_varint(&args);
    piece->start = piece->end = end;
    *s->last = piece;
    s->last = &piece->next;
    return piece;
}

static bool check_batch(struct gt_check_v1 *c, const struct gt_v1_record *record, uint8_t first)
{
    struct gt_bytes args = record->args;
    uint64_t p = gt_get_varint(&args), seq = c->by_number ? gt_get_varint(&args) : 0;
    if (first >> 6 != 1)
        return WRONG("a batch has a wrong number of arguments");
    if (seq > INT64_MAX || gt_get_varint(&args) > INT64_MAX)
        return WRONG("a batch has a time of more than 63 bits");
    return p == UINT64_MAX || p <= INT32_MAX || WRONG("a batch is of P %" PRIu64, p);
}

/* Reads the record of a table or an event. */
static bool read_record(struct gt_check_v1 *c, const struct gt_v1_record *record,
                        const uint8_t *start, uint64_t *ts)
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
    case GT_V1_TIMER_GOROUTINE: gt_check_g_of(c, gt_get_varint(&args))->timer = true; return true;
    default: return read_event(c, record, start, ts);
    }
}

/* Reads all records: checks each, and assigns the file's bytes to Ps. */
bool gt_check_read_records(struct gt_check_v1 *c)
{
    const struct gt_trace *t = c->trace;
    struct gt_bytes bytes = {t->base + GT_HEADER_BYTES, t->base + t->size, false};
    struct gt_v1_record record;
    struct gt_check_piece *piece = NULL;
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

/* Finds the goroutine of an event. */
static void attribute(struct gt_check_source *s, struct gt_check_event *e)
{
    e->g = s->last_g;
    if (gt_check_blocks(e->type))
        s->last_g = 0;
    switch (e->type) {
    case GT_V1_GO_START:
    case GT_V1_GO_START_LOCAL:
    case GT_V1_GO_START_LABEL: e->g = s->last_g = e->arg[0]; break;
    case GT_V1_GO_END:
    case GT_V1_GO_STOP:
    case GT_V1_GO_SCHED:
    case GT_V1_GO_PREEMPT: s->last_g = 0; break;
    case GT_V1_GO_SYS_EXIT:
    case GT_V1_GO_WAITING:
    case GT_V1_GO_IN_SYSCALL: e->g = e->arg[0]; break;
    default: break;
    }
}

static bool next_sample(struct gt_check_v1 *c, struct gt_check_source *s)
{
    if (c->told_samples == c->n_samples)
        return false;
    const struct gt_pair *sample = &c->sample[c->told_samples++];
    s->next = (struct gt_check_event){.type = GT_V1_CPU_SAMPLE,
                                      .key = sample->key,
                                      .ts = sample->key,
                                      .start = c->trace->base + sample->value};
    return true;
}

/* Fills s->next; false: there are no more events. */
bool gt_check_next_event(struct gt_check_v1 *c, struct gt_check_source *s)
{
    struct gt_v1_record record;
    struct gt_check_event *e = &s->next;
    if (s == c->samples)
        return next_sample(c, s);
    do {
        while (!gt_bytes_left(&s->bytes)) {
            const struct gt_check_piece *piece = s->piece;
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
