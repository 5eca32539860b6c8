/*
 * Reads v2, generation by generation, because each has tables of its own. An incomplete generation
 * has no tables, and is left out, as in Go's tools.
 */
#include "batches.h"
#include "order.h"
#include "seek.h"

#include "encoder/format/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Tables ------------------------------------------------------------------------------------- */

/* Keeps a text in which the tracer says something that has a place of its own. */
static bool keep_word(struct gt_reader *r, uint64_t id, struct gt_bytes text)
{
    if (id >= GT_TEXT_FIRST && gt_bytes_begin(&text, GT_ACCOUNT, sizeof GT_ACCOUNT - 1))
        gt_account_rows_keep(&r->accounts, text);
    else if (gt_bytes_begin(&text, GT_ORIGIN, sizeof GT_ORIGIN - 1))
        gt_reader_keep_origin(r, text);
    else if (gt_bytes_begin(&text, GT_SETUP, sizeof GT_SETUP - 1))
        gt_reader_keep_setup(r, text.p, gt_bytes_left(&text));
    else
        return false;
    return true;
}

/* ours: the strings are the tracer's, not of a thread of the program, which may have any texts. */
static void read_strings(struct gt_reader *r, struct gt_bytes data, bool ours)
{
    uint64_t id;
    struct gt_bytes text;
    gt_get_byte(&data);
    while (gt_batch_next_string(&data, &id, &text)) {
        if (ours && keep_word(r, id, text))
            continue;
        if (ours)
            gt_reader_keep_own_text(r, id, &text);
        else
            gt_reader_keep_text(r, id, &text);
        r->trace->whole |= gt_bytes_left(&text) == sizeof GT_WHOLE - 1 &&
                           memcmp(text.p, GT_WHOLE, sizeof GT_WHOLE - 1) == 0;
    }
}

static void read_stacks(struct gt_reader *r, struct gt_bytes data)
{
    struct gt_where frames[GT_FRAMES_MAX];
    gt_get_byte(&data);
    while (gt_bytes_left(&data) && gt_get_byte(&data) == GT_EV_STACK) {
        uint64_t id = gt_get_varint(&data), n = gt_get_varint(&data);
        if (n > GT_FRAMES_MAX)
            return;
        for (uint64_t i = 0; i < n; i++) {
            frames[i].pc = gt_get_varint(&data);
            frames[i].func = gt_reader_text(r, gt_get_varint(&data));
            frames[i].file = gt_reader_text(r, gt_get_varint(&data));
            frames[i].line = gt_get_varint(&data);
        }
        if (data.bad)
            return;
        gt_reader_keep_stack(r, id, frames, n);
    }
}

/* Reads the clock: its frequency, and since Go 1.25 the time of day at the batch's time. */
static void read_clock(struct gt_reader *r, const struct gt_batch *batch)
{
    struct gt_bytes data = batch->data;
    while (gt_bytes_left(&data)) {
        switch (gt_get_byte(&data)) {
        case GT_EV_SYNC: break;
        case GT_EV_FREQUENCY: {
            uint64_t hz = gt_get_varint(&data);
            if (hz)
                r->trace->ns_per_unit = r->ns_per_unit = 1e9 / (double)hz;
            break;
        }
        case GT_EV_CLOCK_SNAPSHOT: {
            gt_get_varint(&data);
            uint64_t mono = gt_get_varint(&data);
            uint64_t s = gt_get_varint(&data), ns = gt_get_varint(&data);
            if (!r->trace->wall_s && !data.bad) {
                r->trace->mono_ns = mono;
                r->trace->wall_s = s;
                r->trace->wall_ns = ns;
            }
            break;
        }
        default: return;
        }
    }
}

/* Each sample has time, M, P, G and stack. */
static void read_samples(struct gt_reader *r, struct gt_bytes data)
{
    uint64_t arg[5];
    gt_get_byte(&data);
    while (gt_bytes_left(&data) && gt_get_byte(&data) == GT_EV_CPU_SAMPLE) {
        for (int i = 0; i < 5; i++)
            arg[i] = gt_get_varint(&data);
        const struct gt_cpu_sample sample = {arg[3], arg[1], arg[2], gt_reader_stack(r, arg[4])};
        gt_order_keep_sample(r, arg[0], &sample);
        r->trace->kinds[GT_EV_CPU_SAMPLE]++;
        r->trace->events++;
    }
}

/* Events ------------------------------------------------------------------------------------- */

/* Fills in the members of an event from its arguments, in the file's order. */
static void fill(struct gt_reader *r, struct gt_happening *h, const uint64_t arg[GT_EVENT_ARGS_MAX])
{
    switch (h->type) {
    case GT_EV_GO_CREATE_SYSCALL: h->g = arg[0]; break;
    case GT_EV_GO_CREATE:
    case GT_EV_GO_CREATE_BLOCKED:
        h->g = arg[0];
        h->its = gt_reader_stack(r, arg[1]);
        h->stack = gt_reader_stack(r, arg[2]);
        break;
    case GT_EV_GO_START:
        h->g = arg[0];
        h->seq = arg[1];
        break;
    case GT_EV_GO_UNBLOCK:
        h->g = arg[0];
        h->seq = arg[1];
        h->stack = gt_reader_stack(r, arg[2]);
        break;
    case GT_EV_GO_STOP:
    case GT_EV_GO_BLOCK:
        h->text = gt_reader_text(r, arg[0]);
        h->stack = gt_reader_stack(r, arg[1]);
        break;
    case GT_EV_GO_SYSCALL_BEGIN: h->stack = gt_reader_stack(r, arg[1]); break;
    case GT_EV_GO_STATUS:
    case GT_EV_GO_STATUS_STACK: /* arg[3] is 0 without a stack */
        h->g = arg[0];
        h->thread = arg[1];
        h->state = (enum gt_g_state)arg[2];
        h->stack = gt_reader_stack(r, arg[3]);
        break;
    case GT_EV_USER_LOG:
        h->task = arg[0];
        h->text = gt_reader_text(r, arg[1]);
        h->more = gt_reader_text(r, arg[2]);
        h->stack = gt_reader_stack(r, arg[3]);
        break;
    case GT_EV_USER_TASK_BEGIN:
        h->task = arg[0];
        h->parent = arg[1];
        h->text = gt_reader_text(r, arg[2]);
        h->stack = gt_reader_stack(r, arg[3]);
        break;
    case GT_EV_USER_TASK_END:
        h->task = arg[0];
        h->stack = gt_reader_stack(r, arg[1]);
        break;
    case GT_EV_USER_REGION_BEGIN:
    case GT_EV_USER_REGION_END:
        h->task = arg[0];
        h->text = gt_reader_text(r, arg[1]);
        h->stack = gt_reader_stack(r, arg[2]);
        break;
    case GT_EV_HEAP_ALLOC:
    case GT_EV_HEAP_GOAL: h->bytes = arg[0]; break;
    case GT_EV_GO_LABEL:
        h->names = true;
        h->text = gt_reader_text(r, arg[0]);
        break;
    case GT_EV_PROC_START: h->p = arg[0]; break;
    case GT_EV_STW_BEGIN:
        h->text = gt_reader_text(r, arg[0]);
        h->stack = gt_reader_stack(r, arg[1]);
        break;
    case GT_EV_PROCS_CHANGE:
    case GT_EV_GC_BEGIN: h->stack = gt_reader_stack(r, arg[1]); break;
    case GT_EV_GC_SWEEP_BEGIN:
    case GT_EV_GC_MARK_ASSIST_BEGIN: h->stack = gt_reader_stack(r, arg[0]); break;
    case GT_EV_PROC_STATUS: h->p = arg[1] == GT_P_IDLE ? GT_NO_P : arg[0]; break;
    default: break;
    }
}

/* The stream on which a status's goroutine runs. Another thread may have written the status. */
static struct gt_stream *stream_of(struct gt_reader *r, struct gt_source *s, uint64_t thread)
{
    if (!thread || thread == GT_NO_THREAD)
        return &s->stream;
    struct gt_source *other = gt_reader_source(r, thread);
    other->stream.thread = thread;
    return &other->stream;
}

/*
 * Begins a coroutine switch, reported as three events: the other coroutine is woken, this one
 * waits or ends, and the other one starts.
 */
static void begin_switch(struct gt_source *s)
{
    struct gt_happening *h = &s->next;
    s->switch_ends = h->type == GT_EV_GO_SWITCH_DESTROY;
    s->switches = LEAVES;
    h->type = GT_EV_GO_UNBLOCK;
    h->g = s->switch_to = h->arg[0];
    h->seq = h->arg[1];
}

static void go_on_with_switch(struct gt_source *s)
{
    struct gt_happening *h = &s->next;
    bool leaves = s->switches-- == LEAVES;
    enum gt_event_type leave = s->switch_ends ? GT_EV_GO_DESTROY : GT_EV_GO_BLOCK;
    *h = (struct gt_happening){.type = leaves ? leave : GT_EV_GO_START,
                               .on = h->on,
                               .part = true,
                               .ts = h->ts,
                               .g = leaves ? 0 : s->switch_to,
                               .text = leaves ? "coroutine" : "",
                               .more = ""};
}

/*
 * Sets all members but arg. Field by field: from one assignment compilers make a slow string
 * instruction.
 */
static void begin(struct gt_happening *h, uint8_t type, uint64_t ts)
{
    h->type = type;
    h->on = NULL;
    h->part = h->names = false;
    h->ts = ts;
    h->own_ns = h->g = h->seq = h->thread = h->p = h->task = h->parent = h->bytes = 0;
    h->state = GT_G_NONE;
    h->text = h->more = "";
    h->stack = h->its = NULL;
}

/* Reads an event's arguments; those that it does not have are 0. */
static bool read_args(struct gt_bytes *bytes, uint8_t type, uint64_t arg[GT_EVENT_ARGS_MAX])
{
    int n = gt_event_args_of(type);
    memset(arg, 0, GT_EVENT_ARGS_MAX * sizeof *arg);
    for (int i = 0; i < n; i++)
        arg[i] = gt_get_varint(bytes);
    return n >= 0 && !bytes->bad;
}

/* Reads the stream's next event as it is in the file; false: there is none. */
static bool read_event(struct gt_reader *r, struct gt_source *s, uint8_t *type)
{
    while (!gt_bytes_left(&s->bytes)) {
        if (!gt_source_next_piece(r->trace, s))
            return false;
    }
    struct gt_bytes bytes = s->bytes; /* a copy stays in registers */
    *type = gt_get_byte(&bytes);
    s->ts += gt_get_varint(&bytes);
    bool good = read_args(&bytes, *type, s->next.arg);
    s->bytes = bytes;
    if (!good)
        snprintf(r->trace->damage, sizeof r->trace->damage, "event type %u of thread %" PRIu64,
                 *type, s->id);
    r->trace->events += good;
    return good;
}

static bool next(struct gt_reader *r, struct gt_source *s)
{
    struct gt_happening *h = &s->next;
    uint8_t type;
    if (s->switches != SWITCHED) {
        go_on_with_switch(s);
        return true;
    }
    do {
        if (!read_event(r, s, &type))
            return false;
        r->trace->experimental += type >= GT_EVENTS_END;
    } while (type >= GT_EVENTS_END);
    r->trace->kinds[type]++;
    begin(h, type, s->ts);
    s->key = s->ts;
    fill(r, h, h->arg);
    h->on = stream_of(r, s, h->thread);
    if (type == GT_EV_GO_SWITCH || type == GT_EV_GO_SWITCH_DESTROY)
        begin_switch(s);
    return true;
}

/* Generations -------------------------------------------------------------------------------- */

static void sort_out(struct gt_reader *r, const struct gt_batch *b)
{
    switch (b->kind) {
    case GT_EV_STRINGS:
    case GT_EV_STACKS:
    case GT_EV_CPU_SAMPLES: break; /* read in later rounds: samples use stacks, which use strings */
    case GT_EV_FREQUENCY:
    case GT_EV_SYNC: read_clock(r, b); break;
    case GT_EV_EVENT_BATCH: {
        struct gt_source *s = gt_reader_source(r, b->thread);
        s->stream.thread = b->thread;
        gt_source_append(s, (struct gt_piece){.start = b->data.p, .end = b->data.end, .ts = b->ts});
        r->trace->event_bytes += b->size;
        if (r->trace->generations == 1 && (!r->start || b->ts < r->start))
            r->trace->start = r->start = b->ts;
        break;
    }
    default: break; /* experiments */
    }
}

/* Whether the trace is ours: in each generation our reasons have the same ids. */
static bool is_ours(struct gt_reader *r)
{
    return !r->trace->of_go && strcmp(gt_reader_text(r, GT_REASON_SYNC), "sync") == 0 &&
           strcmp(gt_reader_text(r, GT_REASON_SLEEP), "sleep") == 0 &&
           strcmp(gt_reader_text(r, GT_REASON_PREEMPTED), "preempted") == 0;
}

static void forget_generation(struct gt_reader *r)
{
    for (size_t i = 0; i < r->n; i++) {
        while (gt_source_next_piece(r->trace, r->source[i]))
            r->source[i]->bytes.p = r->source[i]->bytes.end;
    }
    gt_memo_free(&r->texts);
    gt_memo_free(&r->stacks);
}

/* Reads what comes before a generation's events. */
static void begin_generation(struct gt_reader *r, bool accounts_only)
{
    struct gt_bytes bytes = {r->begin, r->until, false};
    struct gt_batch b;
    r->trace->generations++;
    r->trace->whole = false;
    r->trace->n_blocked = r->trace->n_signals = r->trace->n_brief = r->trace->n_own = 0;
    while (gt_batch_next(&bytes, &b))
        sort_out(r, &b);
    for (bytes.p = r->begin; gt_batch_next(&bytes, &b);) {
        if (b.kind == GT_EV_STRINGS)
            read_strings(r, b.data, !b.thread);
    }
    r->trace->ours |= is_ours(r);
    for (bytes.p = r->begin; !accounts_only && gt_batch_next(&bytes, &b);) {
        if (b.kind == GT_EV_STACKS)
            read_stacks(r, b.data);
    }
    for (bytes.p = r->begin; !accounts_only && gt_batch_next(&bytes, &b);) {
        if (b.kind == GT_EV_CPU_SAMPLES)
            read_samples(r, b.data);
    }
    if (accounts_only)
        forget_generation(r);
    else
        gt_order_begin(r);
}

static void end_generation(struct gt_reader *r)
{
    if (!r->begin)
        return;
    gt_order_tell_samples(r);
    forget_generation(r);
    gt_trace_forget(r->trace, r->begin, r->until);
    r->begin = NULL;
}

/* Goes on to the next part of the file that is to be read; false: there is none. */
static bool next_part(struct gt_reader *r)
{
    const struct gt_trace *t = r->trace;
    if (++r->part >= t->n_parts)
        return false;
    const struct gt_part *before = &t->parts[r->part - 1], *part = &t->parts[r->part];
    if (r->audience->gap && part->start != before->end)
        r->audience->gap(r->audience->arg);
    r->rest = (struct gt_bytes){part->start, part->end, false};
    return true;
}

static bool next_generation(struct gt_reader *r)
{
    const struct gt_trace *t = r->trace;
    const uint8_t *end = NULL;
    end_generation(r);
    do
        end = *t->damage ? NULL : gt_generation_end(r->rest, t->format);
    while (!end && next_part(r));
    if (!end)
        return false;
    r->begin = r->rest.p;
    r->until = r->rest.p = end;
    begin_generation(r, t->parts && t->parts[r->part].accounts_only);
    return true;
}

void gt_trace_begin_v2(struct gt_reader *r)
{
    const struct gt_trace *t = r->trace;
    struct gt_part all = {t->base + GT_HEADER_BYTES, t->base + t->size, false};
    const struct gt_part *part = t->parts ? t->parts : &all;
    r->next = next;
    r->rest = (struct gt_bytes){part->start, part->end, false};
    next_generation(r);
}

bool gt_trace_next_v2(struct gt_reader *r, uint64_t *ns)
{
    while (!gt_order_next(r, ns)) {
        if (!r->begin || !next_generation(r))
            return false;
    }
    return true;
}

void gt_trace_end_v2(struct gt_reader *r)
{
    gt_order_accounts(r, UINT64_MAX);
    r->trace->lost = r->trace->parts ? 0 : gt_bytes_left(&r->rest);
    r->trace->whole &= !r->trace->lost;
}

double gt_trace_last_scale(const struct gt_trace *trace)
{
    struct gt_trace its = *trace;
    struct gt_reader r = {.trace = &its};
    struct gt_place_in_file last;
    struct gt_batch b;
    if (!gt_seek(trace, UINT64_MAX, &last))
        return 0;
    struct gt_bytes bytes = {last.start, trace->base + trace->size, false};
    while (gt_batch_next(&bytes, &b)) {
        if (b.kind == GT_EV_FREQUENCY || b.kind == GT_EV_SYNC)
            read_clock(&r, &b);
    }
    return r.ns_per_unit;
}
