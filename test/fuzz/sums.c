/*
 * What the threads of a trace did in a part of its time: a line for each goroutine, kind and
 * function in which it waited: ns. Usage: sums TRACE [FROM TO], in ns since its beginning.
 */
#include "encoder/read/need.h"
#include "encoder/read/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sum {
    uint64_t g, ns;
    enum gt_kind kind;
    const char *where;
};

static struct {
    uint64_t from, to;
    struct sum *at;
    size_t n;
} sums = {.to = UINT64_MAX};

static void add(void *unused, const struct gt_span *span)
{
    (void)unused;
    uint64_t from = span->from > sums.from ? span->from : sums.from;
    uint64_t to = span->from + span->ns < sums.to ? span->from + span->ns : sums.to;
    bool waits = span->kind != GT_RUNNING && span->kind != GT_SCHED;
    const char *where = waits && span->stack && span->stack->n ? span->stack->frame[0].func : "-";
    if (to <= from)
        return;
    for (size_t i = 0; i < sums.n; i++) {
        struct sum *s = &sums.at[i];
        if (s->g == span->thread->g && s->kind == span->kind && strcmp(s->where, where) == 0) {
            s->ns += to - from;
            return;
        }
    }
    *GT_ADD(sums.at, sums.n) = (struct sum){span->thread->g, to - from, span->kind, where};
}

int main(int argc, char **argv)
{
    struct gt_trace trace;
    struct gt_threads threads = {.span = add};
    if (argc > 3) {
        sums.from = strtoull(argv[2], NULL, 10);
        sums.to = strtoull(argv[3], NULL, 10);
    }
    const char *why = argc < 2 ? "which trace?" : gt_trace_open(&trace, argv[1]);
    if (why || !gt_threads_read(&threads, &trace)) {
        fprintf(stderr, "%s\n", why ? why : trace.damage);
        return EXIT_FAILURE;
    }
    printf("all %" PRIu64 "\n", trace.ns);
    for (size_t i = 0; i < sums.n; i++)
        printf("%" PRIu64 " %s %s %" PRIu64 "\n", sums.at[i].g, gt_kind_names[sums.at[i].kind],
               sums.at[i].where, sums.at[i].ns);
    return 0;
}
