/* See top_cpu.h. */
#include "top_cpu.h"

#include "reading.h"
#include "select.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int by_cpu(const void *a, const void *b)
{
    const struct gt_shares *x = &(*(const struct gt_thread_state *const *)a)->shares;
    const struct gt_shares *y = &(*(const struct gt_thread_state *const *)b)->shares;
    if (x->cpu != y->cpu)
        return x->cpu > y->cpu ? -1 : 1;
    return x->queue > y->queue ? -1 : x->queue < y->queue;
}

/* A count that not every look at a thread tells. */
static void print_count(const struct gt_usage *used, enum gt_usage_number number)
{
    if (used->known & 1u << number)
        printf(" %9" PRIu64, used->of[number]);
    else
        printf(" %9s", "-");
}

static void print_row(const struct gt_thread_state *t, uint64_t sum, uint64_t all)
{
    const struct gt_shares *s = &t->shares;
    double whole = all ? (double)all : 1;
    printf("%10s %5.1f%% %5.1f%% %9s %9s", gt_duration(s->cpu), 100.0 * (double)s->cpu / whole,
           100.0 * (double)sum / whole, gt_duration(s->queue), gt_duration(gt_shares_unseen(s)));
    print_count(&s->used, GT_USED_INVOLUNTARY);
    print_count(&s->used, GT_USED_FAULTS);
    printf("  ");
    gt_print_thread(t);
    puts("");
}

void gt_top_cpu(const struct gt_threads *threads, size_t most)
{
    const struct gt_thread_state **rows = gt_need(calloc(threads->n + 1, sizeof(void *)));
    uint64_t cpu = 0, queue = 0, sum = 0;
    size_t n = 0;
    if (!threads->accounts)
        gt_fail(GT_EXIT_FAILED, "%s: does not tell what its threads used of CPUs",
                threads->trace->path);
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (!gt_select_thread(t))
            continue;
        cpu += t->shares.cpu;
        queue += t->shares.queue;
        rows[n++] = t;
    }
    qsort(rows, n, sizeof *rows, by_cpu);
    printf("%s: %s, %" PRIu64 " threads; %s on CPUs, %s in run queues\n", threads->trace->path,
           gt_duration(threads->trace->ns), threads->n, gt_duration(cpu), gt_duration(queue));
    printf("%10s %6s    sum %9s %9s %9s %9s  %s\n", "on cpu", "%", "runnable", "unseen",
           "preempted", "faults", "thread");
    for (size_t i = 0; i < n && i < most; i++) {
        sum += rows[i]->shares.cpu;
        print_row(rows[i], sum, cpu);
    }
    free(rows);
}
