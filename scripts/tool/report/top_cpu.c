/* See top_cpu.h. */
#include "top_cpu.h"

#include "select.h"
#include "table.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <stdlib.h>

GT_ORDER_POINTERS(by_cpu, struct gt_thread_state, GT_DOWN(shares.cpu) ?: GT_DOWN(shares.queue))

/* Prints a number that the kernel does not give for every thread. */
static void print_count(const char *name, const char *head, int width, const struct gt_usage *used,
                        enum gt_usage_number number)
{
    if (used->known & gt_used_bit(number))
        gt_cell_count(name, head, width, used->of[number]);
    else
        gt_cell_unknown(name, head, width);
}

static void print_row(const struct gt_thread_state *t, uint64_t sum, uint64_t all)
{
    const struct gt_shares *s = &t->shares;
    gt_row_begin();
    gt_cell_ns("cpu_ns", "on CPU", gt_width(10, 8), s->cpu);
    gt_cell_share(NULL, "%", 6, s->cpu, all);
    gt_cell_share(NULL, gt_head_if_room("sum"), 6, sum, all);
    gt_cell_ns("runnable_ns", "runnable", 9, s->queue);
    gt_cell_ns("unseen_ns", gt_head_if_room("unseen"), 9, gt_shares_unseen(s));
    print_count("involuntary", "preempted", 9, &s->used, GT_USED_INVOLUNTARY);
    print_count("faults", "faults", gt_width(9, 7), &s->used, GT_USED_FAULTS);
    gt_cell_thread("thread", "thread", t);
    gt_row_end();
}

void gt_top_cpu(const struct gt_threads *threads, size_t most)
{
    const struct gt_thread_state **rows = gt_need(calloc(threads->n + 1, sizeof(void *)));
    uint64_t cpu = 0, queue = 0, sum = 0;
    size_t n = 0;
    if (!threads->accounts)
        gt_fail(GT_EXIT_FAILED, "%s: has no CPU times of its threads", threads->trace->path);
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (!gt_select_thread(t))
            continue;
        cpu += t->shares.cpu;
        queue += t->shares.queue;
        rows[n++] = t;
    }
    qsort(rows, n, sizeof *rows, by_cpu);
    gt_report_begin(threads);
    gt_report_title(threads);
    gt_report_words("%s on CPUs, %s in run queues\n", gt_duration(cpu), gt_duration(queue));
    gt_report_number("cpu_ns", cpu);
    gt_report_number("runnable_ns", queue);
    gt_head_begin();
    print_row(&(struct gt_thread_state){0}, 0, 0);
    gt_head_end();
    gt_table_begin("by_thread");
    for (size_t i = 0; i < n && i < most; i++) {
        sum += rows[i]->shares.cpu;
        print_row(rows[i], sum, cpu);
    }
    gt_table_end_cut("by_thread", n > most ? n - most : 0);
    gt_report_words("(%srunnable: on no CPU although it could run)\n",
                    gt_head_if_room("unseen: off the CPU in no recorded call; ") ?: "");
    gt_report_end();
    free(rows);
}
