/* See top_sched.h. */
#include "top_sched.h"

#include "table.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <stdlib.h>

/* A thread that ran on a CPU meanwhile. thread: NULL: all other processes together. */
struct meanwhile {
    const struct gt_thread_state *thread;
    uint64_t cpu, ns;
};

static struct {
    struct meanwhile *row;
    size_t n;
    struct gt_memo by_key; /* → index + 1 */
    uint64_t cpu;          /* of the current span */
} all;

static void add(void *arg, const void *who, uint64_t ns)
{
    (void)arg;
    const struct gt_thread_state *thread = who;
    uint64_t *slot = gt_need(gt_memo_at(&all.by_key, (thread ? thread->g : 0) << 20 | all.cpu));
    if (!*slot) {
        *GT_ADD(all.row, all.n) = (struct meanwhile){thread, all.cpu, 0};
        *slot = all.n;
    }
    all.row[*slot - 1].ns += ns;
}

void gt_top_sched_add(const struct gt_threads *threads, const struct gt_span *span)
{
    const struct gt_stretches *on = gt_running_on(&threads->running, span->p);
    if (!on)
        return;
    all.cpu = span->p & 0xfffff;
    uint64_t ours = gt_stretches_between(on, span->from, span->from + span->ns, add, NULL);
    add(NULL, NULL, span->ns > ours ? span->ns - ours : 0);
}

GT_ORDER(by_time, struct meanwhile, GT_DOWN(ns))

static void print_row(const struct meanwhile *row, uint64_t sum)
{
    gt_row_begin();
    gt_cell_ns("ns", "on CPU", gt_width(10, 8), row->ns);
    gt_cell_share(NULL, "%", 6, row->ns, sum);
    gt_cell_count("cpu", "CPU", 4, row->cpu);
    gt_cell_thread("thread", "thread", row->thread);
    gt_cell_text(NULL, "", 0, row->thread ? NULL : "other processes");
    gt_row_end();
}

/* Prints the run-queue time that the kernel has counted and no event shows. */
static void print_untold(const struct gt_threads *threads)
{
    uint64_t untold = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next)
        untold += t->shares.queue > t->ns[GT_SCHED] ? t->shares.queue - t->ns[GT_SCHED] : 0;
    untold = threads->accounts ? untold : 0;
    gt_report_number("untold_ns", untold);
    if (untold)
        gt_report_words(
            "\n%10s more in run queues, counted by the kernel: after waits that a disk or another "
            "process\n%10s ended, or while unseen. The rows have none of it (gotrace top "
            "--kind=cpu).\n",
            gt_duration(untold), "");
}

static void print_meanwhile(const struct gt_threads *threads, size_t most)
{
    uint64_t sum = 0, unknown = 0;
    size_t known = 0, shown = 0;
    if (all.n)
        qsort(all.row, all.n, sizeof *all.row, by_time);
    for (size_t i = 0; i < all.n; i++) {
        bool is_cpu = all.row[i].cpu < threads->cpus;
        known += is_cpu && all.row[i].ns;
        sum += is_cpu ? all.row[i].ns : 0;
        unknown += is_cpu ? 0 : all.row[i].ns;
    }
    if (all.n) {
        gt_report_words("\nMeanwhile on those CPUs:\n");
        gt_head_begin();
        print_row(&(struct meanwhile){0}, 0);
        gt_head_end();
    }
    gt_table_begin("meanwhile");
    for (size_t i = 0; i < all.n && shown < most && all.row[i].ns; i++) {
        if (all.row[i].cpu >= threads->cpus)
            continue;
        shown++;
        print_row(&all.row[i], sum);
    }
    gt_table_end_cut("meanwhile", known - shown);
    gt_report_number("unknown_cpu_ns", unknown);
    if (unknown)
        gt_report_words("%10s of it was for an unknown CPU.\n", gt_duration(unknown));
}

void gt_top_sched_print(const struct gt_threads *threads, size_t most)
{
    if (!threads->cpus)
        gt_report_words("\n(To see which threads had the CPUs, record with gotrace --sched.)\n");
    else
        print_meanwhile(threads, most);
    print_untold(threads);
}
