/* `gotrace top`: where threads waited longest, and the other reports about waits and CPUs. */
#include "kinds.h"
#include "reading.h"
#include "select.h"
#include "short_name.h"
#include "table.h"
#include "top_cpu.h"
#include "top_locks.h"
#include "top_print.h"
#include "top_rows.h"
#include "top_sched.h"
#include "top_wakeups.h"

#include "scripts/tool/fold.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(void)
{
    puts("usage: gotrace top [options] TRACE\n"
         "\n"
         "Prints where threads waited longest: the function that waited and its caller,\n"
         "total time, count, mean and maximum. Waits that had not ended when the trace\n"
         "ended come first.\n"
         "\n"
         "What each row is about (default: the place of the wait):\n"
         "  --by-thread     the place, for each thread apart\n"
         "  --cum           each function on the stacks of waits\n"
         "  --wakers        the stack that ended the wait: it released the lock, signalled\n"
         "                  the condition variable, wrote to the pipe\n"
         "  --preempted     wakers that lost their CPU before they ended the wait\n"
         "                  (record with --sched)\n"
         "  --holders       what the holder of the lock did meanwhile\n"
         "  --by-lock       the lock: who waited, who held it, how long it was held; holds\n"
         "                  without waiters count from gotrace --hold-min=TIME on\n"
         "  --wakeups       condition variables: waits and how they ended, signals, and\n"
         "                  signals that reached nobody\n"
         "  --cpu           the function that ran: CPU samples (record with --cpu-hz=HZ)\n"
         "\n"
         "Which waits:\n"
         "  --kind=KINDS    sync, network, syscall, sched (runnable without a CPU), sleep,\n"
         "                  other, unseen (record with --sched), all; several with commas\n"
         "                  (default: sync,network,syscall,sched); cpu: which threads had\n"
         "                  the CPUs, and which were runnable meanwhile");
    puts(gt_select_help);
    puts("\nOutput:\n"
         "  -n ROWS         so many rows (default: 20; by thread: 5 for each)\n"
         "  --json          print JSON: gotrace-json(5)\n"
         "  -h, --help      print this");
    exit(0);
}

#define NAME(report, name) name,
const char *const gt_top_reports[] = {GT_TOP_REPORTS(NAME) NULL};

static bool has_holders(const struct gt_top *top)
{
    return top->report == GT_TOP_HOLDERS || top->report == GT_TOP_BY_LOCK;
}

static void add_wait(void *arg, const struct gt_span *span)
{
    struct gt_top *top = arg;
    if (top->report == GT_TOP_WAKEUPS) {
        gt_top_wakeups_add(span);
    } else if (has_holders(top)) {
        gt_top_locks_note_call(span);
        gt_top_locks_add(top->threads, span, top->report == GT_TOP_BY_LOCK);
    } else if (gt_top_add_wait(top, span) && top->kinds == GT_KINDS_SCHED) {
        gt_top_sched_add(top->threads, span);
    }
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    const struct gt_top *top = arg;
    gt_top_locks_note_hold(top->threads, lock, hold, top->report == GT_TOP_BY_LOCK);
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    (void)ns;
    gt_top_add_sample(arg, thread, stack);
}

static void choose(struct gt_top *top, enum gt_top_report report)
{
    if (top->report && top->report != report)
        gt_fail(GT_EXIT_USAGE, "top: only one of --by-thread, --cum, --wakers, --preempted, "
                               "--holders, --by-lock and --wakeups");
    top->report = report;
}

static void read_options(struct gt_top *top, int argc, char **argv)
{
#define OPTION(report, name) {name, no_argument, NULL, GT_TOP_##report},
    static const struct option longs[] = {
        GT_TOP_REPORTS(OPTION){"cum", no_argument, NULL, GT_TOP_CUM},
        {"cpu", no_argument, NULL, 'p'},
        {"kind", required_argument, NULL, 'k'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        GT_SELECT_OPTIONS,
        {0}};
    for (int c; (c = gt_option(argc, argv, "n:h", longs)) != -1;) {
        switch (c) {
        case 'p': top->cpu = true; break;
        case 'k': top->kinds = gt_read_kinds("top", optarg); break;
        case 'j': gt_report_json = true; break;
        case 'n': top->most = gt_read_rows("top", optarg); break;
        case 'h': help(); break;
        default:
            if (c <= GT_TOP_CUM)
                choose(top, (enum gt_top_report)c);
            else if (!gt_select_option(c, optarg))
                exit(GT_EXIT_USAGE);
        }
    }
    top->lengths = gt_report_json || gt_wide_names;
    if (!top->most)
        top->most = top->report == GT_TOP_BY_THREAD ? 5 : 20;
    if (!gt_report_json && !gt_wide_names)
        gt_fold_output();
}

/* Ends the program if options contradict each other. */
static void check(const struct gt_top *top)
{
    bool regroups = top->report == GT_TOP_BY_THREAD || top->report == GT_TOP_CUM;
    if (top->cpu && ((top->report && !regroups) || top->kinds != GT_KINDS_USUAL))
        gt_fail(GT_EXIT_USAGE,
                "top: --cpu shows CPU samples, and no waits: leave out --kind, --wakers, "
                "--preempted, --holders, --by-lock and --wakeups");
    if (top->kinds == GT_KINDS_CPU && (regroups || gt_top_has_wakers(top)))
        gt_fail(GT_EXIT_USAGE,
                "top: --kind=cpu has a row for each thread: leave out --by-thread, --cum, "
                "--wakers and --preempted");
    if (top->report == GT_TOP_WAKEUPS && gt_select_any())
        gt_fail(GT_EXIT_USAGE,
                "top: --wakeups counts the signals of all threads and of the whole trace: leave "
                "out --thread, --from, --to, --task and --focus");
    if (top->kinds == GT_KINDS_CPU && gt_select_more_than_threads())
        gt_fail(GT_EXIT_USAGE,
                "top: --kind=cpu is about the whole trace: of --thread, --from, --to, --task "
                "and --focus it takes --thread only");
}

static void print(struct gt_top *top)
{
    if (top->report == GT_TOP_PREEMPTED && !top->threads->cpus)
        gt_fail(GT_EXIT_FAILED,
                "%s: does not say when threads lost their CPUs. Record with gotrace --sched",
                top->threads->trace->path);
    if (top->kinds == GT_KINDS_CPU) {
        gt_top_cpu(top->threads, top->most);
    } else if (top->report == GT_TOP_WAKEUPS) {
        gt_top_wakeups_print(top->threads, top->most);
    } else if (has_holders(top)) {
        gt_top_locks_print(top->threads, top->report == GT_TOP_BY_LOCK, top->most);
    } else {
        gt_top_sum_up(top);
        gt_top_print(top);
    }
}

int gt_command_top(int argc, char **argv)
{
    struct gt_trace trace;
    struct gt_top top = {.kinds = GT_KINDS_USUAL};
    struct gt_threads threads = {.arg = &top};
    read_options(&top, argc, argv);
    gt_need_one_trace(argc, argv, "TRACE");
    check(&top);
    top.threads = &threads;
    threads.span = top.cpu ? NULL : add_wait;
    threads.sample = top.cpu ? add_sample : NULL;
    threads.hold = has_holders(&top) ? add_hold : NULL;
    threads.keep_history = has_holders(&top);
    threads.keep_running = top.report == GT_TOP_PREEMPTED || top.kinds == GT_KINDS_SCHED;
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    print(&top);
    return 0;
}
