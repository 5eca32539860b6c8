/* See rewrite.h: chooses the parts of the file to read, and has them rewritten. */
#include "rewrite.h"

#include "holding.h"
#include "numbers.h"
#include "rewriting.h"

#include "scripts/tool/report/reading.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/tool.h"
#include "scripts/tool/written.h"
#include "writing.h"

#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/read/seek.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * A v2 generation begins with the status of every goroutine, so the part needs no earlier events.
 * But earlier generations have thread names, open tasks and regions, and the begin of open waits.
 * So all of them are read if they are small (ALL_BEFORE). Else the file's beginning is read, where
 * programs mostly name their threads, and the bytes just before the part.
 */
enum { ALL_BEFORE = 192 << 20, AT_BEGINNING = 32 << 20, JUST_BEFORE = 48 << 20 };

/* A thread's CPU account for a time may stand in one of the generations that follow. */
enum { GENERATIONS_AFTER = 2 };

/* Parts to read ------------------------------------------------------------------------------ */

static struct gt_part parts[4];

static void add_part(struct gt_trace *trace, const uint8_t *start, const uint8_t *end,
                     bool accounts_only)
{
    if (start >= end)
        return;
    parts[trace->n_parts++] = (struct gt_part){start, end, accounts_only};
    trace->parts = parts;
}

static const uint8_t *end_of(const struct gt_trace *trace, const uint8_t *start)
{
    struct gt_bytes bytes = {start, trace->base + trace->size, false};
    const uint8_t *end = gt_generation_end(bytes, trace->format);
    return end ? end : bytes.end;
}

static void choose_before(struct gt_trace *trace, const struct gt_place_in_file *from)
{
    const uint8_t *first = trace->base + GT_HEADER_BYTES;
    struct gt_place_in_file begun, before;
    size_t size = (size_t)(from->start - first);
    if (!gt_seek_offset(trace, AT_BEGINNING, &begun) || begun.start > from->start)
        begun.start = from->start;
    if (!gt_seek_offset(trace, (size_t)(from->start - trace->base) - JUST_BEFORE, &before) ||
        before.start > from->start)
        before.start = from->start;
    if (begun.start >= before.start)
        begun.start = before.start;
    add_part(trace, first, begun.start, false);
    add_part(trace, before.start, from->start, false);
    gt_say("of the %zu MiB before that, names, tasks and regions are looked for in %zu; "
           "gotrace cut --thorough looks in all",
           size >> 20, (size_t)(begun.start - first + (from->start - before.start)) >> 20);
}

/* Leaves trace->parts NULL if the whole file is to be read. */
static void choose_parts(struct gt_trace *trace, const struct gt_rewrite *r)
{
    struct gt_place_in_file from, to;
    if (trace->format->v1 || !gt_seek(trace, r->from, &from) || !gt_seek(trace, r->to, &to))
        return;
    const uint8_t *end = end_of(trace, to.start), *after = end, *all = trace->base + trace->size;
    const uint8_t *first = trace->base + GT_HEADER_BYTES;
    for (int i = 0; i < GENERATIONS_AFTER && after < all; i++)
        after = end_of(trace, after);
    if (from.start - first <= ALL_BEFORE || r->thorough) {
        if (end == all)
            return;
        add_part(trace, first, end, false);
    } else {
        choose_before(trace, &from);
        add_part(trace, from.start, end, false);
    }
    add_part(trace, end, after, true);
    trace->progress = NULL; /* reading parts is quick */
}

/* Reading for lengths and threads ------------------------------------------------------------- */

static void open_part(struct gt_trace *trace, const char *path)
{
    gt_open_trace(trace, path);
    trace->progress = NULL;
}

uint64_t gt_rewrite_length(const char *input)
{
    struct gt_trace trace;
    struct gt_threads threads = {0};
    struct gt_place_in_file last;
    struct gt_part ends[2];
    open_part(&trace, input);
    if (!trace.format->v1 && gt_seek(&trace, UINT64_MAX, &last)) {
        const uint8_t *first = trace.base + GT_HEADER_BYTES, *end = trace.base + trace.size;
        ends[0] = (struct gt_part){first, end_of(&trace, first), false};
        ends[1] = (struct gt_part){last.start, end, false};
        trace.parts = ends;
        trace.n_parts = last.start > first ? 2 : 1;
    }
    gt_read_threads(&threads, &trace);
    return trace.ns;
}

static bool matches(const struct gt_thread_state *t, const regex_t *pattern)
{
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)t->thread);
    return regexec(pattern, number, 0, NULL, 0) == 0 ||
           regexec(pattern, t->name, 0, NULL, 0) == 0 ||
           regexec(pattern, t->routine, 0, NULL, 0) == 0;
}

/* Chooses the threads whose names match at the end of what is read. */
static void choose_threads(const struct gt_trace *like, const struct gt_rewrite *r,
                           struct gt_rewriting *rewriting)
{
    static struct gt_memo by_thread, by_g;
    struct gt_threads threads = {0};
    struct gt_trace trace;
    open_part(&trace, r->input);
    trace.parts = NULL;
    if (like->parts) {
        static struct gt_part same[4];
        for (size_t i = 0; i < like->n_parts; i++)
            same[i] = (struct gt_part){trace.base + (like->parts[i].start - like->base),
                                       trace.base + (like->parts[i].end - like->base),
                                       like->parts[i].accounts_only};
        trace.parts = same;
        trace.n_parts = like->n_parts;
    }
    gt_read_threads(&threads, &trace);
    for (const struct gt_thread_state *t = threads.first; t; t = t->next) {
        if (!matches(t, r->threads))
            continue;
        *(uint64_t *)gt_need(gt_memo_at(&by_g, t->g)) = 1;
        if (t->thread != GT_NO_THREAD)
            *(uint64_t *)gt_need(gt_memo_at(&by_thread, t->thread + 1)) = 1;
    }
    if (!by_thread.used)
        gt_fail(GT_EXIT_FAILED, "%s: there is no such thread", r->input);
    rewriting->threads = &by_thread;
    rewriting->gs = &by_g;
}

/* The end ------------------------------------------------------------------------------------ */

/* whole: nothing of the trace is left out. Brief waits were only counted, for all of it. */
static void tell_end(const struct gt_trace *trace, bool whole)
{
    size_t blocked = 0;
    struct gt_brief_row brief;
    for (size_t i = 0; i < trace->n_own; i++) {
        bool tells = whole || !gt_brief_read(trace->own[i], &brief);
        const char *text = tells ? gt_retell_at_end(trace->own[i], trace, &blocked) : NULL;
        if (text)
            gt_writing_at_end(text);
    }
}

/* Rewriting ----------------------------------------------------------------------------------- */

bool gt_rewrite_is_same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Before Go 1.7 function names are in the program only, and events lack goroutine numbers. */
static void refuse_go(const struct gt_trace *trace, const struct gt_rewrite *r)
{
    if (trace->ours)
        return;
    if (trace->format->v1 && gt_v1_global_order(trace->format))
        gt_fail(GT_EXIT_FAILED,
                "%s is by a Go program and as Go 1.5 writes it: that is not supported",
                trace->path);
    if (r->threads)
        gt_fail(GT_EXIT_FAILED,
                "%s is by a Go program, whose goroutines share threads: it cannot be cut by them",
                trace->path);
}

/* Whether libgotrace wrote the trace, as its first generation or page says. */
static bool is_ours(const char *input)
{
    struct gt_trace trace;
    open_part(&trace, input);
    const uint8_t *first = trace.base + GT_HEADER_BYTES;
    struct gt_part part = {first, NULL, true};
    const struct gt_audience audience = {0};
    if (trace.format->v1) {
        trace.size = trace.size < 1 << 20 ? trace.size : 1 << 20;
    } else {
        part.end = end_of(&trace, first);
        trace.parts = &part;
        trace.n_parts = 1;
    }
    gt_trace_read(&trace, &audience);
    return trace.ours;
}

static bool reads_to_end(const struct gt_trace *trace)
{
    for (size_t i = 0; i < trace->n_parts; i++) {
        if (!trace->parts[i].accounts_only && trace->parts[i].end == trace->base + trace->size)
            return true;
    }
    return !trace->parts;
}

static struct gt_holdings *read_holds(const struct gt_rewrite *r, const struct gt_format *format)
{
    enum { TASKS_SINCE = 11 };
    size_t n;
    if (format->minor < TASKS_SINCE)
        gt_fail(GT_EXIT_USAGE, "--holds: %s has no tasks", format->name);
    struct gt_holdings *all = gt_holdings_read(r->input, &n);
    gt_say("%s: %zu holds of locks are tasks", r->output, n);
    return all;
}

static void resolve_times(struct gt_rewrite *r)
{
    uint64_t end = r->from_end || r->to_before_end ? gt_rewrite_length(r->input) : 0;
    if (r->from_end)
        r->from = end > r->from ? end - r->from : 0;
    if (r->to_before_end)
        r->to = end > r->to ? end - r->to : 0;
    if (r->from >= r->to)
        gt_fail_reversed(r->from, r->to);
}

void gt_rewrite(struct gt_rewrite *r)
{
    struct gt_trace trace;
    if (gt_rewrite_is_same(r->input, r->output))
        gt_fail(GT_EXIT_USAGE, "%s: that is what is read; -o takes another file", r->output);
    gt_open_trace(&trace, r->input);
    const struct gt_format *format = r->format ? r->format : trace.format;
    trace.ours = is_ours(r->input);
    refuse_go(&trace, r);
    resolve_times(r);
    choose_parts(&trace, r);
    struct gt_rewriting rewriting = {.trace = &trace, .from = r->from, .to = r->to};
    if (r->holds)
        rewriting.holdings = read_holds(r, format);
    if (r->threads)
        choose_threads(&trace, r, &rewriting);
    gt_replacement_begin(r->output);
    if (format->v1 && gt_v1_global_order(format))
        gt_replacement_beside(".elf");
    gt_writing_begin(gt_replacement_temporary(), format, r->from + 1);
    gt_writing_blame(r->input);
    r->of_go = !trace.ours;
    if (r->of_go)
        gt_writing_of_go();
    gt_rewriting_begin(&rewriting);
    if (!gt_trace_read(&trace, &gt_rewriting_audience))
        gt_fail(GT_EXIT_FAILED, "%s: damaged: %s", trace.path, trace.damage);
    r->experimental = trace.experimental;
    bool to_end = reads_to_end(&trace) && r->to >= trace.ns;
    if (to_end && !trace.events)
        gt_fail(GT_EXIT_FAILED, "%s: no event is recorded in it", trace.path);
    if (to_end && trace.ns < r->from)
        gt_fail_late(trace.path, r->from, trace.ns);
    if (to_end)
        tell_end(&trace, !r->from && !r->threads);
    gt_rewriting_end(to_end ? trace.ns : r->to, to_end ? trace.whole : true);
    gt_written_check(gt_replacement_temporary(), r->output, (char *[]){(char *)r->input}, 1);
    gt_replacement_finish(r->input);
}

void gt_rewrite_say_experiments(const struct gt_rewrite *r)
{
    if (r->experimental)
        gt_say("%s: without the %llu events of experiments of Go's runtime", r->output,
               (unsigned long long)r->experimental);
}
