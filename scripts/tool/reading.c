/* See reading.h. */
#include "reading.h"

#include "frames.h"
#include "places.h"
#include "tool.h"

#include <stdio.h>
#include <unistd.h>

enum { LARGE = 64 << 20, STEP = 1 << 20 };

/* A terminal sees a percentage that changes; a log one line. */
static void show_progress(const struct gt_trace *trace, uint64_t before, uint64_t now)
{
    bool terminal = isatty(2);
    if (!before && !terminal)
        gt_say("reading %s, %zu MiB", trace->path, trace->size >> 20);
    if (terminal && now / STEP != before / STEP)
        fprintf(stderr, "\rgotrace: reading %s: %3.0f %%", trace->path,
                100.0 * (double)now / (double)trace->size);
}

void gt_open_trace(struct gt_trace *trace, const char *path)
{
    const char *why = gt_trace_open(trace, path);
    if (why)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, why);
    if (trace->size >= LARGE)
        trace->progress = show_progress;
    gt_frames_use(trace);
}

void gt_read_threads(struct gt_threads *threads, struct gt_trace *trace)
{
    bool whole = gt_threads_read(threads, trace);
    if (trace->progress && isatty(2))
        fprintf(stderr, "\r\033[K");
    if (!whole)
        gt_fail(GT_EXIT_FAILED, "%s: damaged: %s", trace->path, trace->damage);
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
