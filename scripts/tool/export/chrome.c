/*
 * Writes JSON trace events, for chrome://tracing and other readers of that format. Each thread is a
 * row of complete events, with arrows from wakers to woken threads. Regions, held locks and tasks
 * are asynchronous events, as they need not nest in a thread's events.
 */
#include "export.h"
#include "export_names.h"
#include "timeline.h"

#include "encoder/base/path.h"
#include "encoder/read/need.h"
#include "scripts/tool/json.h"

#include <inttypes.h>
#include <string.h>

enum { PROCESS = 1 };

struct chrome {
    FILE *file;
    uint64_t events, flows, holds;
    struct gt_memo stacks; /* the stacks that events refer to */
    const struct gt_callers **stack;
    size_t n;
};

/* Begins an event. The caller adds members, each behind a comma, and calls end. */
static void begin(struct chrome *c, const char *phase, uint64_t g, uint64_t ns)
{
    fputs(c->events++ ? ",\n{" : "\n{", c->file);
    fprintf(c->file, "\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu64 ",\"ts\":%" PRIu64 ".%03u", phase,
            PROCESS, g, ns / 1000, (unsigned)(ns % 1000));
}

static void put_kind(const char *category, const char *name)
{
    gt_json_text("cat", category);
    gt_json_text("name", name);
}

/* Adds a member of the arguments, if there is such a text. */
static void put_argument(struct chrome *c, bool *any, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(c->file, *any ? ",\"%s\":" : ",\"args\":{\"%s\":", name);
    gt_json_string(text);
    *any = true;
}

static void end(struct chrome *c, bool any)
{
    fputs(any ? "}}" : "}", c->file);
}

static void put_stack(struct chrome *c, const struct gt_callers *stack)
{
    if (!stack || !stack->n)
        return;
    uint64_t *known = gt_need(gt_memo_at(&c->stacks, stack->number));
    if (!*known) {
        *GT_ADD(c->stack, c->n) = stack;
        *known = 1;
    }
    fprintf(c->file, ",\"sf\":\"%" PRIu32 ".0\"", stack->number);
}

/* An arrow from the waker to the beginning of the woken thread's next event. */
static void put_flow(struct chrome *c, const struct gt_span *span, uint64_t ns)
{
    const uint64_t g[] = {span->by->g, span->thread->g};
    c->flows++;
    for (int woken = 0; woken < 2; woken++) {
        begin(c, woken ? "f" : "s", g[woken], ns + (uint64_t)woken);
        put_kind("wake", "wakes");
        fprintf(c->file, ",\"id\":%" PRIu64 "%s", c->flows, woken ? ",\"bp\":\"e\"" : "");
        end(c, false);
    }
}

static void put_span(void *arg, const struct gt_span *span)
{
    struct chrome *c = arg;
    bool waits = span->kind != GT_RUNNING, any = false;
    begin(c, "X", span->thread->g, span->from);
    fprintf(c->file, ",\"dur\":%" PRIu64 ".%03u", span->ns / 1000, (unsigned)(span->ns % 1000));
    put_kind(gt_kind_names[span->kind], gt_export_state(span));
    if (waits) {
        put_stack(c, span->stack);
        put_argument(c, &any, "where", span->stack ? gt_export_place(span->stack) : NULL);
        put_argument(c, &any, "state", span->ended ? NULL : "still waits when the trace ends");
    }
    put_argument(c, &any, "lock", span->wanted ? span->wanted->lock->name : NULL);
    put_argument(c, &any, "owner", gt_export_holder(span->wanted));
    if (span->by) {
        put_argument(c, &any, "ended by", gt_export_thread_id(span->by));
        put_argument(c, &any, "waker", span->waker ? gt_export_place(span->waker) : NULL);
    }
    end(c, any);
    if (span->by)
        put_flow(c, span, span->from + span->ns);
}

/* One half of an asynchronous event; events of one category and id are on one row. */
static bool put_async(struct chrome *c, bool ends, const char *category, uint64_t id,
                      const struct gt_mark *mark)
{
    begin(c, ends ? "e" : "b", mark->thread ? mark->thread->g : 0, mark->ns);
    put_kind(category, mark->name);
    fprintf(c->file, ",\"id\":\"%s %" PRIu64 "\"", category, id);
    return false;
}

static void put_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct chrome *c = arg;
    struct gt_mark mark = {.thread = hold->thread, .ns = hold->from, .name = lock->name};
    bool any = put_async(c, false, "hold", ++c->holds, &mark);
    put_argument(c, &any, "taken in", hold->place);
    put_argument(c, &any, "thread", gt_export_thread_id(hold->thread));
    end(c, any);
    mark.ns = hold->to;
    end(c, put_async(c, true, "hold", c->holds, &mark));
}

static void put_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct chrome *c = arg;
    begin(c, "P", thread->g, ns);
    put_kind("cpu", stack->n ? stack->frame[0].func : "sample");
    put_stack(c, stack);
    end(c, false);
}

static void put_mark(void *arg, const struct gt_mark *mark)
{
    struct chrome *c = arg;
    bool any = false;
    switch (mark->kind) {
    case GT_MARK_TASK: end(c, put_async(c, mark->ends, "task", mark->task, mark)); break;
    case GT_MARK_REGION:
        if (mark->thread)
            end(c, put_async(c, mark->ends, "region", mark->thread->g, mark));
        break;
    case GT_MARK_LOG:
        begin(c, "i", mark->thread ? mark->thread->g : 0, mark->ns);
        put_kind("log", *mark->name ? mark->name : "log");
        fputs(",\"s\":\"t\"", c->file);
        put_argument(c, &any, "message", mark->more);
        end(c, any);
        break;
    }
}

static void put_count(void *arg, enum gt_counter counter, uint64_t ns, uint64_t value)
{
    struct chrome *c = arg;
    bool bytes = counter == GT_COUNT_HEAP || counter == GT_COUNT_GOAL;
    begin(c, "C", 0, ns);
    gt_json_text("name", gt_counter_names[counter]);
    fprintf(c->file, ",\"args\":{\"%s\":%" PRIu64, bytes ? "bytes" : "threads", value);
    end(c, true);
}

static void put_name(struct chrome *c, const char *what, uint64_t g, const char *name)
{
    bool any = false;
    begin(c, "M", g, 0);
    gt_json_text("name", what);
    put_argument(c, &any, "name", name);
    end(c, any);
}

/* Writes each frame, with its stack's number and its index there as id; the leaf has index 0. */
static void put_frames(struct chrome *c)
{
    const char *before = "";
    fputs("\n],\"stackFrames\":{", c->file);
    for (size_t i = 0; i < c->n; i++) {
        const struct gt_callers *stack = c->stack[i];
        for (uint32_t k = 0; k < stack->n; k++) {
            fprintf(c->file, "%s\n\"%" PRIu32 ".%" PRIu32 "\":{\"name\":", before, stack->number,
                    k);
            gt_json_string(stack->frame[k].func);
            if (k + 1 < stack->n)
                fprintf(c->file, ",\"parent\":\"%" PRIu32 ".%" PRIu32 "\"", stack->number, k + 1);
            putc('}', c->file);
            before = ",";
        }
    }
    fputs("\n}", c->file);
}

void gt_export_chrome(const struct gt_export *x)
{
    struct chrome c = {.file = x->file};
    struct gt_threads threads = {0};
    struct gt_timeline timeline = {.span = put_span,
                                   .hold = put_hold,
                                   .sample = put_sample,
                                   .mark = put_mark,
                                   .count = put_count,
                                   .arg = &c};
    gt_json_to(x->file);
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", x->file);
    put_name(&c, "process_name", 0, gt_path_name(x->trace->path));
    gt_timeline_read(&timeline, &threads, x->trace);
    for (const struct gt_thread_state *t = threads.first; t; t = t->next)
        put_name(&c, "thread_name", t->g, gt_export_thread_id(t));
    put_frames(&c);
    fputs("}\n", x->file);
    gt_json_to(NULL);
}
