/* See reading.h. */
#include "reading.h"

#include "frame_code.h"
#include "idle.h"
#include "call_places.h"
#include "select.h"
#include "scripts/tool/names/later.h"
#include "scripts/tool/recover/recover.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <unistd.h>

enum { LARGE = 64 << 20, STEP = 1 << 20 };

/* Shows a percentage that changes on a terminal, and one line elsewhere. */
static void show_progress(const struct gt_trace *trace, uint64_t before, uint64_t now)
{
    bool terminal = isatty(2);
    if (!before && !terminal)
        gt_say("reading %s, %zu MiB", trace->path, trace->size >> 20);
    if (terminal && now / STEP != before / STEP)
        fprintf(stderr, "\rgotrace: reading %s: %3.0f %%", gt_printable(trace->path),
                100.0 * (double)now / (double)trace->size);
}

void gt_open_trace(struct gt_trace *trace, const char *path)
{
    const char *found = gt_recovered(path), *why = gt_trace_open(trace, found);
    if (why)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, why);
    trace->path = path;
    trace->named = found == path ? NULL : found;
    gt_later_fill_in(trace);
    if (trace->size >= LARGE)
        trace->progress = show_progress;
}

void gt_show_doing(const struct gt_trace *trace, const char *what)
{
    if (trace->progress && isatty(2))
        fprintf(stderr, what ? "\r\033[Kgotrace: %s" : "\r\033[K", what);
}

void gt_read_threads(struct gt_threads *threads, struct gt_trace *trace)
{
    gt_frames_use(trace);
    bool whole = gt_threads_read(threads, trace);
    gt_show_doing(trace, NULL);
    if (!whole)
        gt_fail(GT_EXIT_FAILED, "%s: damaged: %s", trace->path, trace->damage);
}

/* The command's own callbacks, which get only what is selected. */
static struct {
    void (*span)(void *arg, const struct gt_span *span);
    void (*sample)(void *arg, const struct gt_thread_state *thread, const struct gt_callers *stack,
                   uint64_t ns);
} its;

static void pass_span(void *arg, const struct gt_span *span)
{
    gt_idle_note(span);
    if (its.span)
        gt_select_span(span, its.span, arg);
}

static void pass_sample(void *arg, const struct gt_thread_state *thread,
                        const struct gt_callers *stack, uint64_t ns)
{
    if (gt_select_sample(thread, stack, ns))
        its.sample(arg, thread, stack, ns);
}

void gt_read_selected(struct gt_threads *threads, struct gt_trace *trace)
{
    its.span = threads->span;
    its.sample = threads->sample;
    threads->span = pass_span;
    threads->sample = its.sample ? pass_sample : NULL;
    gt_select_prepare(trace->path);
    gt_read_threads(threads, trace);
    gt_select_check(trace);
    gt_idle_decide(trace);
}

const char *gt_cut_words(const struct gt_trace *trace)
{
    static char text[320];
    if (!trace->lost)
        return "";
    snprintf(text, sizeof text,
             "The file is cut: its last %llu of %zu bytes cannot be read, and what followed is\n"
             "missing. All below is about the beginning only. If it is a copy, copy it again; if\n"
             "the program was killed, gotrace recover makes the trace of its .live file.\n\n",
             (unsigned long long)trace->lost, trace->size);
    return text;
}

void gt_print_thread(const struct gt_thread_state *t)
{
    if (t->thread != GT_NO_THREAD)
        printf("%llu", (unsigned long long)t->thread);
    else
        printf("-");
    printf("%s%s", *t->name ? " " : "", t->name);
    if (!*t->routine)
        return;
    printf(" (");
    gt_print_function(t->routine);
    printf(")");
}
