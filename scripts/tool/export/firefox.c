/*
 * Writes a profile for the Firefox Profiler, in its processed format. Each thread's states are
 * samples, weighted by their time; its waits, held locks and annotations are markers. The format
 * has a thread's columns one after the other, so records are spooled until the trace is read.
 */
#include "export.h"
#include "export_names.h"
#include "timeline.h"
#include "firefox_tables.h"
#include "spool.h"

#include "encoder/base/path.h"
#include "scripts/tool/json.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <string.h>

/* The oldest format in which threads share their tables; the profiler brings it up to date. */
enum { FORMAT = 61, GECKO_FORMAT = 30 };

enum type { STATE, HOLD, TASK, REGION, LOG, SAMPLE, TYPES };
enum phase { INSTANT, INTERVAL, BEGINS, ENDS };

/* The fields of markers; each value is the index of a text. */
enum field { WHERE, LOCK, OWNER, ENDED_BY, MESSAGE, FIELDS };

static const char *const field_names[FIELDS] = {"where", "lock", "owner", "endedBy", "message"};
static const char *const field_labels[FIELDS] = {"Where", "Lock", "Owner", "Ended by", "Message"};
static const char *const type_names[TYPES] = {"Wait",   "Hold", "Task",
                                              "Region", "Log",  "CPU sample"};

/* The first categories are those of enum gt_kind, the states of threads. */
enum category { HOLDS = GT_KINDS, ANNOTATIONS, CATEGORIES };

static const char *const colours[CATEGORIES] = {"green",  "red",         "purple", "lightblue",
                                                "orange", "transparent", "grey",   "brown",
                                                "yellow", "magenta"};
static const unsigned category_of[TYPES] = {
    [STATE] = GT_RUNNING,   [HOLD] = HOLDS,      [TASK] = ANNOTATIONS,
    [REGION] = ANNOTATIONS, [LOG] = ANNOTATIONS, [SAMPLE] = GT_RUNNING};

static const char *category_name(unsigned category)
{
    static const char *const others[] = {"held locks", "annotations"};
    return category < GT_KINDS ? gt_kind_names[category] : others[category - GT_KINDS];
}

struct record {
    enum type type;
    enum phase phase;
    unsigned category;
    uint32_t name, stack, field[FIELDS];
    uint64_t from, to; /* ns; of a counter: time and value */
};

struct firefox {
    FILE *file;
    struct gt_firefox_tables tables;
    struct gt_spool spool;
    struct gt_memo lists; /* thread → its struct gt_spool_list */
    struct gt_spool_list heap;
    struct gt_memo tasks; /* task → its index in `open`, plus 1 */
    struct open_task {
        const struct gt_thread_state *thread;
        struct record record;
        bool over;
    } * open;
    size_t n_open;
    bool any; /* the list in work has records */
};

/* Reading ------------------------------------------------------------------------------------ */

static struct gt_spool_list *list_of(struct firefox *f, const struct gt_thread_state *t)
{
    uint64_t *slot = gt_need(gt_memo_at(&f->lists, (uintptr_t)t));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, sizeof(struct gt_spool_list)));
    return (void *)(uintptr_t)*slot;
}

static void add(struct firefox *f, const struct gt_thread_state *t, const struct record *record)
{
    gt_spool_add(&f->spool, list_of(f, t), record);
}

static struct record record_of(struct firefox *f, enum type type, const char *name, uint64_t from,
                               uint64_t to)
{
    struct record r = {.type = type,
                       .phase = INTERVAL,
                       .category = category_of[type],
                       .name = gt_firefox_text(&f->tables, *name ? name : "log"),
                       .stack = GT_FIREFOX_NONE,
                       .from = from,
                       .to = to};
    for (int i = 0; i < FIELDS; i++)
        r.field[i] = GT_FIREFOX_NONE;
    return r;
}

static void add_span(void *arg, const struct gt_span *span)
{
    struct firefox *f = arg;
    struct gt_firefox_tables *t = &f->tables;
    bool waits = span->kind != GT_RUNNING;
    struct record r = record_of(f, STATE, gt_export_state(span), span->from, span->from + span->ns);
    r.category = span->kind;
    r.stack = gt_firefox_stack(t, waits ? span->stack : NULL, span->kind);
    if (waits && span->stack)
        r.field[WHERE] = gt_firefox_text(t, gt_export_place(span->stack));
    if (span->wanted)
        r.field[LOCK] = gt_firefox_text(t, span->wanted->lock->name);
    r.field[OWNER] = gt_firefox_text(t, gt_export_holder(span->wanted));
    if (span->by)
        r.field[ENDED_BY] = gt_firefox_text(t, gt_export_thread_id(span->by));
    if (waits && !span->ended)
        r.field[MESSAGE] = gt_firefox_text(t, "still waits when the trace ends");
    add(f, span->thread, &r);
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct firefox *f = arg;
    struct record r = record_of(f, HOLD, lock->name, hold->from, hold->to);
    r.field[LOCK] = r.name;
    r.field[WHERE] = gt_firefox_text(&f->tables, hold->place);
    add(f, hold->thread, &r);
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct firefox *f = arg;
    struct record r = record_of(f, SAMPLE, stack->n ? stack->frame[0].func : "sample", ns, ns);
    r.phase = INSTANT;
    r.stack = gt_firefox_stack(&f->tables, stack, GT_RUNNING);
    add(f, thread, &r);
}

static void add_task(struct firefox *f, const struct gt_mark *mark)
{
    uint64_t *slot = gt_need(gt_memo_at(&f->tasks, mark->task));
    if (mark->ends && *slot) {
        struct open_task *task = &f->open[*slot - 1];
        task->record.to = mark->ns;
        if (!task->over)
            add(f, task->thread, &task->record);
        task->over = true;
    } else if (!mark->ends) {
        *GT_ADD(f->open, f->n_open) = (struct open_task){
            .thread = mark->thread, .record = record_of(f, TASK, mark->name, mark->ns, mark->ns)};
        *slot = f->n_open;
    }
}

static void add_mark(void *arg, const struct gt_mark *mark)
{
    struct firefox *f = arg;
    if (!mark->thread)
        return;
    if (mark->kind == GT_MARK_TASK) {
        add_task(f, mark);
        return;
    }
    bool region = mark->kind == GT_MARK_REGION;
    struct record r = record_of(f, region ? REGION : LOG, mark->name, mark->ns, mark->ns);
    r.phase = region ? mark->ends ? ENDS : BEGINS : INSTANT;
    r.field[MESSAGE] = gt_firefox_text(&f->tables, mark->more);
    add(f, mark->thread, &r);
}

static void add_count(void *arg, enum gt_counter counter, uint64_t ns, uint64_t value)
{
    struct firefox *f = arg;
    if (counter == GT_COUNT_HEAP)
        gt_spool_add(&f->spool, &f->heap, &(struct record){.from = ns, .to = value});
}

/* Writing ------------------------------------------------------------------------------------ */

static void put_ms(FILE *file, uint64_t ns)
{
    fprintf(file, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

static void put_index(FILE *file, uint32_t index)
{
    fprintf(file, index == GT_FIREFOX_NONE ? "null" : "%" PRIu32, index);
}

/*
 * Columns: each is one pass over the records, and has one or two rows for some records. A thread's
 * state is two samples, at its begin and just before its end, as the profiler's timeline changes
 * from one sample to the next half way between them. The second sample is before the end, as the
 * timeline leaves out samples at the end of the trace. The first sample has all the weight.
 */
static bool is_sample(const struct record *r)
{
    return r->type == STATE;
}

static bool is_marker(const struct record *r)
{
    return r->type != STATE || r->category != GT_RUNNING;
}

struct column {
    const char *name;
    bool (*about)(const struct record *r);
    void (*put)(FILE *file, const struct record *r);
};

static void put_stacks(FILE *file, const struct record *r)
{
    put_index(file, r->stack);
    putc(',', file);
    put_index(file, r->stack);
}

static void put_times(FILE *file, const struct record *r)
{
    put_ms(file, r->from);
    putc(',', file);
    put_ms(file, r->to > r->from ? r->to - 1 : r->to);
}

static void put_weights(FILE *file, const struct record *r)
{
    put_ms(file, r->to - r->from);
    fputs(",0", file);
}

/* ns of CPU for each ns of a state, of the thread that is written. */
static struct {
    double runs, waits;
} cpu;

/*
 * Divides the CPU time by the thread's account among its states. Without an account the thread had
 * a CPU while it ran. What it used beyond that it used in its calls.
 */
static void divide_cpu(const struct gt_thread_state *t)
{
    const struct gt_shares s = gt_shares_within(&t->shares, t->end - t->begin);
    double runs = (double)t->ns[GT_RUNNING], waits = 0, all = s.time ? (double)s.cpu : runs;
    for (int k = GT_SYNC; k < GT_UNSEEN; k++)
        waits += (double)t->ns[k];
    cpu.runs = all < runs ? all / runs : 1;
    cpu.waits = all <= runs ? 0 : all - runs < waits ? (all - runs) / waits : 1;
}

/* The CPU time since the sample before. */
static void put_cpu(FILE *file, const struct record *r)
{
    bool waits = r->category >= GT_SYNC && r->category < GT_UNSEEN;
    double rate = r->category == GT_RUNNING ? cpu.runs : waits ? cpu.waits : 0;
    fprintf(file, "0,%.0f", rate * (double)(r->to - r->from));
}

static void put_from(FILE *file, const struct record *r)
{
    put_ms(file, r->from);
}

static void put_to(FILE *file, const struct record *r)
{
    put_ms(file, r->to);
}

static void put_name(FILE *file, const struct record *r)
{
    put_index(file, r->name);
}

static void put_phase(FILE *file, const struct record *r)
{
    fprintf(file, "%d", r->phase);
}

static void put_category(FILE *file, const struct record *r)
{
    fprintf(file, "%u", r->category);
}

static void put_data(FILE *file, const struct record *r)
{
    fprintf(file, "{\"type\":\"%s\"", type_names[r->type]);
    for (int i = 0; i < FIELDS; i++) {
        if (r->field[i] != GT_FIREFOX_NONE)
            fprintf(file, ",\"%s\":%" PRIu32, field_names[i], r->field[i]);
    }
    if (r->stack != GT_FIREFOX_NONE) {
        fputs(",\"cause\":{\"time\":", file);
        put_ms(file, r->from);
        fprintf(file, ",\"stack\":%" PRIu32 "}", r->stack);
    }
    putc('}', file);
}

static const struct column sample_columns[] = {{"stack", is_sample, put_stacks},
                                               {"time", is_sample, put_times},
                                               {"weight", is_sample, put_weights},
                                               {"threadCPUDelta", is_sample, put_cpu}};
static const struct column marker_columns[] = {
    {"data", is_marker, put_data},      {"name", is_marker, put_name},
    {"startTime", is_marker, put_from}, {"endTime", is_marker, put_to},
    {"phase", is_marker, put_phase},    {"category", is_marker, put_category}};

struct pass {
    FILE *file;
    const struct column *column;
    uint64_t n;
};

static void put_cell(void *arg, const void *record)
{
    struct pass *p = arg;
    if (!p->column->about(record))
        return;
    if (p->n++)
        putc(',', p->file);
    p->column->put(p->file, record);
}

static void put_table(struct firefox *f, const char *name, const struct gt_spool_list *list,
                      const struct column *columns, size_t n)
{
    struct pass p = {f->file, NULL, 0};
    fprintf(f->file, ",\n\"%s\":{", name);
    for (size_t i = 0; i < n; i++) {
        p = (struct pass){f->file, &columns[i], 0};
        fprintf(f->file, "\"%s\":[", columns[i].name);
        gt_spool_each(&f->spool, list, put_cell, &p);
        fputs("],", f->file);
    }
    bool samples = columns == sample_columns;
    if (samples)
        fputs("\"weightType\":\"tracing-ms\",", f->file);
    fprintf(f->file, "\"length\":%" PRIu64 "}", samples ? 2 * p.n : p.n);
}

static void put_thread(struct firefox *f, const struct gt_thread_state *t, uint64_t pid)
{
    const struct gt_spool_list *list = list_of(f, t);
    FILE *file = f->file;
    fprintf(file,
            "{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null");
    fputs(",\"registerTime\":", file);
    put_ms(file, t->begin);
    fputs(",\"unregisterTime\":", file);
    if (t->ended)
        put_ms(file, t->end);
    else
        fputs("null", file);
    fprintf(file, ",\"pausedRanges\":[],\"isMainThread\":%s", t->g == 1 ? "true" : "false");
    fprintf(file, ",\"pid\":\"%" PRIu64 "\",\"tid\":%" PRIu64, pid,
            t->thread != GT_NO_THREAD ? t->thread : t->g);
    gt_json_text("name", gt_export_thread(t));
    divide_cpu(t);
    put_table(f, "samples", list, sample_columns, sizeof sample_columns / sizeof *sample_columns);
    put_table(f, "markers", list, marker_columns, sizeof marker_columns / sizeof *marker_columns);
    putc('}', file);
}

static void put_schema(FILE *file)
{
    fputs(",\n\"markerSchema\":[", file);
    for (int t = 0; t < TYPES; t++) {
        fprintf(file,
                "%s{\"name\":\"%s\",\"tooltipLabel\":\"%s: {marker.name}\",\"chartLabel\":"
                "\"{marker.name}\",\"tableLabel\":\"{marker.name} {marker.data.where} "
                "{marker.data.lock} {marker.data.message}\",\"display\":[\"marker-chart\","
                "\"marker-table\"%s],\"fields\":[",
                t ? "," : "", type_names[t], type_names[t],
                t == TASK || t == REGION ? ",\"timeline-overview\"" : "");
        for (int i = 0; i < FIELDS; i++)
            fprintf(file, "%s{\"key\":\"%s\",\"label\":\"%s\",\"format\":\"unique-string\"}",
                    i ? "," : "", field_names[i], field_labels[i]);
        fputs("]}", file);
    }
    putc(']', file);
}

/*
 * Has the profiler show all threads at first. By itself it shows the 15 with the most CPU time, and
 * leaves out those that have nearly none. Of more than 15 threads it chooses.
 */
static void put_visible(FILE *file, const struct gt_threads *threads)
{
    enum { SHOWN = 15 };
    if (threads->n > SHOWN)
        return;
    fputs(",\"initialVisibleThreads\":[", file);
    for (uint64_t i = 0; i < threads->n; i++)
        fprintf(file, "%s%" PRIu64, i ? "," : "", i);
    putc(']', file);
}

static void put_meta(const struct gt_export *x, const struct gt_threads *threads)
{
    FILE *file = x->file;
    const struct gt_trace *t = x->trace;
    fprintf(file,
            "\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":1,"
            "\"startTime\":%" PRIu64 ",\"processType\":0,\"stackwalk\":1,\"debug\":false,"
            "\"symbolicated\":true,\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":"
            "true,\"keepProfileThreadOrder\":true,\"importedFrom\":\"gotrace\","
            "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"}",
            GECKO_FORMAT, FORMAT, t->wall_s * 1000 + t->wall_ns / 1000000);
    gt_json_text("product", gt_path_name(t->path));
    fputs(",\"profilingStartTime\":0,\"profilingEndTime\":", file);
    put_ms(file, t->ns);
    fputs(",\n\"categories\":[", file);
    for (unsigned c = 0; c < CATEGORIES; c++)
        fprintf(file, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
                c ? "," : "", category_name(c), colours[c]);
    putc(']', file);
    put_schema(file);
    put_visible(file, threads);
    putc('}', file);
}

/* A counter's column has changes, which the profiler adds up. */
struct changes {
    FILE *file;
    bool times, any;
    uint64_t last;
};

static void put_change(void *arg, const void *record)
{
    struct changes *c = arg;
    const struct record *r = record;
    if (c->any)
        putc(',', c->file);
    c->any = true;
    if (c->times)
        put_ms(c->file, r->from);
    else
        fprintf(c->file, "%" PRId64, (int64_t)(r->to - c->last));
    c->last = r->to;
}

static void put_heap(struct firefox *f, uint64_t pid)
{
    fprintf(f->file,
            ",\n\"counters\":[{\"name\":\"malloc\",\"category\":\"Memory\",\"description\":"
            "\"live bytes\",\"pid\":\"%" PRIu64 "\",\"mainThreadIndex\":0,\"samples\":{\"time\":[",
            pid);
    gt_spool_each(&f->spool, &f->heap, put_change, &(struct changes){f->file, true, false, 0});
    fputs("],\"count\":[", f->file);
    gt_spool_each(&f->spool, &f->heap, put_change, &(struct changes){f->file, false, false, 0});
    fprintf(f->file, "],\"length\":%" PRIu64 "}}]", f->heap.n);
}

static void write_profile(struct firefox *f, const struct gt_export *x,
                          const struct gt_threads *threads)
{
    const struct gt_thread_state *first = gt_threads_find(threads, 1);
    uint64_t pid = first && first->thread != GT_NO_THREAD ? first->thread : 1;
    fputs("{", x->file);
    put_meta(x, threads);
    fputs(",\n\"libs\":[],\"pages\":[]", x->file);
    if (f->heap.n)
        put_heap(f, pid);
    fputs(",\n\"threads\":[", x->file);
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        put_thread(f, t, pid);
        fputs(t->next ? ",\n" : "]", x->file);
    }
    fputs(threads->first ? ",\n\"shared\":{" : "],\n\"shared\":{", x->file);
    gt_firefox_put_tables(&f->tables, x->file);
    fputs("}}\n", x->file);
}

void gt_export_firefox(const struct gt_export *x)
{
    struct firefox f = {
        .file = x->file, .tables = {.trace = x->trace}, .spool = {.record = sizeof(struct record)}};
    struct gt_threads threads = {0};
    struct gt_timeline timeline = {.span = add_span,
                                   .hold = add_hold,
                                   .sample = add_sample,
                                   .mark = add_mark,
                                   .count = add_count,
                                   .arg = &f};
    gt_timeline_read(&timeline, &threads, x->trace);
    for (size_t i = 0; i < f.n_open; i++) {
        f.open[i].record.to = x->trace->ns;
        if (!f.open[i].over)
            add(&f, f.open[i].thread, &f.open[i].record);
    }
    gt_json_to(x->file);
    write_profile(&f, x, &threads);
    gt_json_to(NULL);
}
