/*
 * Reads v1: one stream of events for each P, with the tables in between. Events that say something
 * of goroutines are reported in the terms of v2.
 */
#include "need.h"
#include "v1_events.h"
#include "v1_go.h"

#include "encoder/format/setup.h"

#include <stdlib.h>

/* Tables ------------------------------------------------------------------------------------- */

static void keep(struct gt_piece **list, const struct gt_bytes *args)
{
    struct gt_piece *p = gt_need(malloc(sizeof *p));
    *p = (struct gt_piece){.next = *list, .start = args->p, .end = args->end};
    *list = p;
}

static void read_frame(struct gt_reader *r, struct gt_bytes *args, struct gt_where *frame)
{
    *frame = (struct gt_where){.pc = gt_get_varint(args)};
    if (gt_v1_global_order(r->trace->format)) {
        frame->pc--; /* the call's PC; the file has the return address */
        gt_v1_lines_find(&r->lines, &r->trace->contents, frame);
    } else {
        frame->func = gt_reader_text(r, gt_get_varint(args));
        frame->file = gt_reader_text(r, gt_get_varint(args));
        frame->line = gt_get_varint(args);
    }
}

static void read_stacks(struct gt_reader *r)
{
    enum { MAX = 1000 }; /* as many as Go's readers take */
    struct gt_where frames[MAX];
    for (struct gt_piece *p = r->stack_records, *next; p; p = next) {
        struct gt_bytes args = {p->start, p->end, false};
        uint64_t id = gt_get_varint(&args), n = gt_get_varint(&args);
        for (uint64_t i = 0; i < n && i < MAX; i++)
            read_frame(r, &args, &frames[i]);
        if (id && !args.bad && n <= MAX)
            gt_reader_keep_stack(r, id, frames, n);
        next = p->next;
        free(p);
    }
}

/* Events ------------------------------------------------------------------------------------- */

enum argument {
    NONE,
    G,
    SEQ,
    LABEL,
    ITS_STACK,
    STACK,
    TASK,
    PARENT,
    MODE,
    BYTES,
    NUMBER,
    SECOND,
    STW_KIND
};

/* Events about goroutines or the program, in the terms of v2. `text`: the reason of a wait. */
static const struct word {
    enum gt_event_type type;
    enum argument arg[GT_V1_ARGS_MAX];
    const char *text;
    enum gt_g_state state;
} words[GT_V1_EVENTS_END] = {
    [GT_V1_PROC_START] = {GT_EV_PROC_START},
    [GT_V1_PROC_STOP] = {GT_EV_PROC_STOP},
    [GT_V1_GO_CREATE] = {GT_EV_GO_CREATE, {G, ITS_STACK, STACK}},
    [GT_V1_GO_START] = {GT_EV_GO_START, {G, SEQ}},
    [GT_V1_GO_START_LABEL] = {GT_EV_GO_START, {G, SEQ, LABEL}},
    [GT_V1_GO_START_LOCAL] = {GT_EV_GO_START, {G}},
    [GT_V1_GO_END] = {GT_EV_GO_DESTROY},
    [GT_V1_GO_SCHED] = {GT_EV_GO_STOP, {STACK}, "runtime.Gosched"},
    [GT_V1_GO_PREEMPT] = {GT_EV_GO_STOP, {STACK}, "preempted"},
    [GT_V1_GO_STOP] = {GT_EV_GO_BLOCK, {STACK}, "forever"},
    [GT_V1_GO_SLEEP] = {GT_EV_GO_BLOCK, {STACK}, "sleep"},
    [GT_V1_GO_BLOCK] = {GT_EV_GO_BLOCK, {STACK}},
    [GT_V1_GO_BLOCK_SYNC] = {GT_EV_GO_BLOCK, {STACK}, "sync"},
    [GT_V1_GO_BLOCK_COND] = {GT_EV_GO_BLOCK, {STACK}, "sync.(*Cond).Wait"},
    [GT_V1_GO_BLOCK_NET] = {GT_EV_GO_BLOCK, {STACK}, "network"},
    [GT_V1_GO_BLOCK_SEND] = {GT_EV_GO_BLOCK, {STACK}, "chan send"},
    [GT_V1_GO_BLOCK_RECV] = {GT_EV_GO_BLOCK, {STACK}, "chan receive"},
    [GT_V1_GO_BLOCK_SELECT] = {GT_EV_GO_BLOCK, {STACK}, "select"},
    [GT_V1_GO_BLOCK_GC] = {GT_EV_GO_BLOCK, {STACK}, "GC mark assist wait for work"},
    [GT_V1_GO_UNBLOCK] = {GT_EV_GO_UNBLOCK, {G, SEQ, STACK}},
    [GT_V1_GO_UNBLOCK_LOCAL] = {GT_EV_GO_UNBLOCK, {G, STACK}},
    [GT_V1_GO_SYS_BLOCK] = {GT_EV_GO_SYSCALL_BEGIN},
    /* Its goroutine is runnable then, and has a start event of its own. */
    [GT_V1_GO_SYS_EXIT] = {GT_EV_GO_SYSCALL_END_BLOCKED, {G, SEQ}},
    [GT_V1_GO_SYS_EXIT_LOCAL] = {GT_EV_GO_SYSCALL_END_BLOCKED, {G}},
    [GT_V1_USER_TASK_CREATE] = {GT_EV_USER_TASK_BEGIN, {TASK, PARENT, LABEL, STACK}},
    [GT_V1_USER_TASK_END] = {GT_EV_USER_TASK_END, {TASK, STACK}},
    [GT_V1_USER_REGION] = {GT_EV_USER_REGION_BEGIN, {TASK, MODE, LABEL, STACK}},
    [GT_V1_USER_LOG] = {GT_EV_USER_LOG, {TASK, LABEL, STACK}},
    [GT_V1_GOMAXPROCS] = {GT_EV_PROCS_CHANGE, {NUMBER, STACK}},
    [GT_V1_GC_START] = {GT_EV_GC_BEGIN, {NUMBER, STACK}},
    [GT_V1_GC_DONE] = {GT_EV_GC_END},
    [GT_V1_GC_SWEEP_START] = {GT_EV_GC_SWEEP_BEGIN, {STACK}},
    [GT_V1_GC_SWEEP_DONE] = {GT_EV_GC_SWEEP_END, {NUMBER, SECOND}},
    [GT_V1_GC_MARK_ASSIST_START] = {GT_EV_GC_MARK_ASSIST_BEGIN, {STACK}},
    [GT_V1_GC_MARK_ASSIST_DONE] = {GT_EV_GC_MARK_ASSIST_END},
    [GT_V1_STW_START] = {GT_EV_STW_BEGIN, {STW_KIND}, "GC"},
    [GT_V1_STW_DONE] = {GT_EV_STW_END},
    [GT_V1_HEAP_ALLOC] = {GT_EV_HEAP_ALLOC, {BYTES}},
    [GT_V1_HEAP_GOAL] = {GT_EV_HEAP_GOAL, {BYTES}},
    [GT_V1_GO_WAITING] = {GT_EV_GO_STATUS, {G}, .state = GT_G_WAITING},
    [GT_V1_GO_IN_SYSCALL] = {GT_EV_GO_STATUS, {G}, .state = GT_G_SYSCALL},
};

/* Go 1.21 has other numbers for the reasons. */
static const char *why_world_stops(const struct gt_format *format, uint64_t kind)
{
    if (format->minor < 10)
        kind = GT_V1_STW_MARKING;
    else if (!format->v1_marking)
        kind += GT_V1_STW_MARKING;
    return kind < GT_V1_STW_KINDS ? gt_v1_stw_kinds[kind] : "";
}

static void read_argument(struct gt_reader *r, enum argument what, struct gt_bytes *args,
                          struct gt_happening *h)
{
    switch (what) {
    case G: h->g = gt_get_varint(args); break;
    case SEQ: h->seq = gt_v1_global_order(r->trace->format) ? 0 : gt_get_varint(args); break;
    case LABEL: h->text = gt_reader_text(r, gt_get_varint(args)); break;
    case ITS_STACK: h->its = gt_reader_stack(r, gt_get_varint(args)); break;
    case STACK: h->stack = gt_reader_stack(r, gt_get_varint(args)); break;
    case TASK: h->task = gt_get_varint(args); break;
    case PARENT: h->parent = gt_get_varint(args); break;
    case MODE: h->type = gt_get_varint(args) ? GT_EV_USER_REGION_END : h->type; break;
    case BYTES: h->bytes = gt_get_varint(args); break;
    case NUMBER: h->arg[0] = gt_get_varint(args); break;
    case SECOND: h->arg[1] = gt_get_varint(args); break;
    case STW_KIND:
        if (!r->trace->ours)
            h->text = why_world_stops(r->trace->format, gt_get_varint(args));
        break;
    case NONE: break;
    }
}

/* false: the event is not reported. */
static bool translate(struct gt_reader *r, struct gt_source *s, const struct gt_v1_record *record)
{
    unsigned type = record->type;
    struct gt_bytes rest = record->args, *args = &rest;
    const struct word *word = type < GT_V1_EVENTS_END ? &words[type] : &words[0];
    struct gt_happening *h = &s->next;
    if (type == GT_V1_PROC_START)
        s->stream.thread = gt_get_varint(args);
    else if (type == GT_V1_GO_SYS_CALL)
        s->call = gt_reader_stack(r, gt_get_varint(args));
    h->type = word->type;
    h->p = s->stream.p = s->id;
    h->text = word->text ? word->text : "";
    h->more = "";
    if (type == GT_V1_GO_BLOCK && r->trace->ours)
        h->text = GT_UNSEEN_TEXT;
    h->names = type == GT_V1_GO_START_LABEL;
    h->state = word->state;
    h->seq = h->type == GT_EV_GO_STATUS ? 1 : 0;
    h->stack = h->type == GT_EV_GO_SYSCALL_BEGIN ? s->call : NULL;
    for (int i = 0; i < GT_V1_ARGS_MAX; i++)
        read_argument(r, word->arg[i], args, h);
    if (type == GT_V1_USER_LOG)
        h->more =
            gt_contents_name(&r->trace->contents, record->value.p, gt_bytes_left(&record->value));
    return h->type;
}

static bool is_by_go(const struct gt_trace *t)
{
    return !t->ours && !gt_v1_global_order(t->format);
}

static bool next(struct gt_reader *r, struct gt_source *s)
{
    struct gt_v1_entry event;
    bool by_go = is_by_go(r->trace);
    if (gt_v1_go_is_exits(r, s))
        return gt_v1_go_next_exit(r, s);
    if (by_go && gt_v1_go_tell_more(r, s))
        return true;
    while (gt_v1_event_next(r, s, &event)) {
        s->next = (struct gt_happening){.ts = event.ts, .on = &s->stream, .thread = GT_NO_THREAD};
        s->key = gt_v1_global_order(r->trace->format) ? event.seq : event.ts;
        bool told = translate(r, s, &event.record);
        if (by_go ? gt_v1_go_tell(r, s, &event) : told)
            return true;
    }
    return false;
}

/* Each sample has time, P, G and stack. It is in the file where P 0 was at the time of writing. */
static void read_samples(struct gt_reader *r)
{
    for (struct gt_piece *p = r->sample_records, *next; p; p = next) {
        struct gt_bytes args = {p->start, p->end, false};
        gt_get_varint(&args); /* the time of writing */
        uint64_t at = gt_get_varint(&args);
        struct gt_cpu_sample sample = {.thread = GT_NO_THREAD, .p = gt_get_varint(&args)};
        sample.g = gt_get_varint(&args);
        sample.stack = gt_reader_stack(r, gt_get_varint(&args));
        gt_order_keep_sample(r, at, &sample);
        next = p->next;
        free(p);
    }
}

/* The file ----------------------------------------------------------------------------------- */

static void begin_piece(struct gt_reader *r, struct gt_v1_record *record, const uint8_t *from,
                        struct gt_source **current)
{
    uint64_t p = gt_get_varint(&record->args);
    uint64_t seq = gt_v1_global_order(r->trace->format) ? gt_get_varint(&record->args) : 0;
    uint64_t ts = gt_get_varint(&record->args);
    *current = gt_reader_source(r, p);
    gt_source_append(*current, (struct gt_piece){.start = from, .end = from, .ts = ts, .seq = seq});
    if (ts && (!r->start || ts < r->start))
        r->trace->start = r->start = ts;
}

static void keep_string(struct gt_reader *r, struct gt_v1_record *record)
{
    uint64_t id = gt_get_varint(&record->args);
    struct gt_bytes text = gt_get_part(&record->args, gt_get_varint(&record->args));
    gt_reader_keep_own_text(r, id, &text);
}

/* Keeps the setup, whose bytes are numbers. */
static void keep_setup(struct gt_reader *r, struct gt_bytes numbers)
{
    char text[GT_SETUP_MAX] = "";
    for (size_t i = 0; i + 1 < sizeof text && gt_bytes_left(&numbers); i++)
        text[i] = (char)gt_get_varint(&numbers);
    gt_reader_keep_setup(r, text, sizeof text);
}

/* A record with the id 0 is not a stack: it may say that nothing is missing, or be an account. */
static void keep_stack(struct gt_reader *r, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    if (gt_get_varint(&args)) {
        keep(&r->stack_records, &record->args);
        return;
    }
    r->trace->ours = true; /* every page of ours has such a record */
    uint64_t n = gt_get_varint(&args), first = gt_get_varint(&args);
    r->trace->whole |= n == 1 && first == GT_V1_WHOLE;
    r->trace->of_go |= n == 1 && first == GT_V1_OF_GO;
    if (n && first == GT_V1_ACCOUNT)
        gt_account_rows_keep(&r->accounts, args);
    else if (n && first == GT_V1_ORIGIN)
        gt_reader_keep_origin(r, args);
    else if (n && first == GT_V1_SETUP)
        keep_setup(r, args);
}

/* Assigns the file's bytes to Ps, and reads the tables. */
static void sort_out(struct gt_reader *r)
{
    struct gt_trace *t = r->trace;
    struct gt_bytes bytes = {t->base + GT_HEADER_BYTES, t->base + t->size, false};
    struct gt_source *current = NULL;
    struct gt_v1_record record;
    const uint8_t *whole = bytes.p;
    while (gt_v1_record_next(&bytes, t->format, &record)) {
        uint64_t hz;
        switch (record.type) {
        case GT_V1_BATCH: begin_piece(r, &record, bytes.p, &current); break;
        case GT_V1_STRING: keep_string(r, &record); break;
        case GT_V1_STACK: keep_stack(r, &record); break;
        case GT_V1_CPU_SAMPLE:
            keep(&r->sample_records, &record.args);
            t->whole = false;
            break;
        case GT_V1_FREQUENCY:
            if ((hz = gt_get_varint(&record.args)))
                r->ns_per_unit = 1e9 / (double)hz;
            break;
        default: t->whole = false; break;
        }
        whole = bytes.p;
        if (current)
            current->last->end = whole;
    }
    t->lost = (uint64_t)(t->base + t->size - whole);
    t->whole &= !t->lost;
    t->ours &= !t->of_go;
}

void gt_trace_begin_v1(struct gt_reader *r)
{
    r->ns_per_unit = 1;
    r->next = next;
    if (gt_v1_global_order(r->trace->format))
        gt_v1_lines_open(&r->lines, r->trace->path);
    sort_out(r);
    r->trace->ns_per_unit = r->ns_per_unit;
    read_stacks(r);
    read_samples(r);
    if (is_by_go(r->trace))
        gt_v1_go_begin(r);
    gt_order_begin(r);
}

void gt_trace_end_v1(struct gt_reader *r)
{
    double end = gt_reader_ns(r, r->end); /* some events at the end may not have been reported */
    if (end > (double)r->trace->ns)
        r->trace->ns = (uint64_t)end;
    gt_order_accounts(r, UINT64_MAX);
    gt_order_tell_samples(r);
    gt_v1_go_end(r);
}
