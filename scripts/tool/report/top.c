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

/* The report that the options ask for; `top` has the rest of them. */
struct wanted {
    bool holders, by_lock, wakeups;
    unsigned reports; /* bits: the options that were given of those of which one is allowed */
    struct gt_top top;
};

static void add_wait(void *arg, const struct gt_span *span)
{
    struct wanted *wanted = arg;
    struct gt_top *top = &wanted->top;
    if (wanted->wakeups) {
        gt_top_wakeups_add(span);
    } else if (wanted->holders) {
        gt_top_locks_note_call(span);
        gt_top_locks_add(top->threads, span, wanted->by_lock);
    } else if (gt_top_add_wait(top, span) && top->kinds == GT_KINDS_SCHED) {
        gt_top_sched_add(top->threads, span);
    }
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    const struct wanted *wanted = arg;
    gt_top_locks_note_hold(wanted->top.threads, lock, hold, wanted->by_lock);
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct wanted *wanted = arg;
    (void)ns;
    gt_top_add_sample(&wanted->top, thread, stack);
}

static void read_options(struct wanted *wanted, int argc, char **argv)
{
    static const struct option longs[] = {{"by-thread", no_argument, NULL, 't'},
                                          {"cum", no_argument, NULL, 'c'},
                                          {"wakers", no_argument, NULL, 'w'},
                                          {"preempted", no_argument, NULL, 'l'},
                                          {"cpu", no_argument, NULL, 'p'},
                                          {"kind", required_argument, NULL, 'k'},
                                          {"holders", no_argument, NULL, 'o'},
                                          {"by-lock", no_argument, NULL, 'b'},
                                          {"wakeups", no_argument, NULL, 'u'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          GT_SELECT_OPTIONS,
                                          {0}};
    static const char reports[] = "tcwlobu";
    struct gt_top *top = &wanted->top;
    for (int c; (c = gt_option(argc, argv, "n:h", longs)) != -1;) {
        const char *report = memchr(reports, c, sizeof reports - 1);
        wanted->reports |= report && c < GT_OPTION_FRAMES ? 1u << (report - reports) : 0;
        switch (c) {
        case 't': top->by_thread = true; break;
        case 'c': top->cumulative = true; break;
        case 'w': top->wakers = true; break;
        case 'l': top->wakers = top->preempted = true; break;
        case 'p': top->cpu = true; break;
        case 'o': wanted->holders = true; break;
        case 'u': wanted->wakeups = true; break;
        case 'b': wanted->holders = wanted->by_lock = true; break;
        case 'k': top->kinds = gt_read_kinds("top", optarg); break;
        case 'j': gt_report_json = true; break;
        case 'n': top->most = gt_read_rows("top", optarg); break;
        case 'h': help(); break;
        default:
            if (!gt_select_option(c, optarg))
                exit(GT_EXIT_USAGE);
        }
    }
    top->lengths = gt_report_json || gt_wide_names;
    if (!top->most)
        top->most = top->by_thread ? 5 : 20;
    if (!gt_report_json && !gt_wide_names)
        gt_fold_output();
}

/* Ends the program if options contradict each other. */
static void check(const struct wanted *wanted)
{
    const struct gt_top *top = &wanted->top;
    if (wanted->reports & (wanted->reports - 1)) /* more than one bit */
        gt_fail(GT_EXIT_USAGE, "top: only one of --by-thread, --cum, --wakers, --preempted, "
                               "--holders, --by-lock and --wakeups");
    if (top->cpu &&
        (top->wakers || wanted->holders || wanted->wakeups || top->kinds != GT_KINDS_USUAL))
        gt_fail(GT_EXIT_USAGE,
                "top: --cpu shows CPU samples, and no waits: leave out --kind, --wakers, "
                "--preempted, --holders, --by-lock and --wakeups");
    if (top->kinds == GT_KINDS_CPU && (top->by_thread || top->cumulative || top->wakers))
        gt_fail(GT_EXIT_USAGE,
                "top: --kind=cpu has a row for each thread: leave out --by-thread, --cum, "
                "--wakers and --preempted");
    if (wanted->wakeups && gt_select_any())
        gt_fail(GT_EXIT_USAGE,
                "top: --wakeups counts the signals of all threads and of the whole trace: leave "
                "out --thread, --from, --to, --task and --focus");
    if (top->kinds == GT_KINDS_CPU && gt_select_more_than_threads())
        gt_fail(GT_EXIT_USAGE,
                "top: --kind=cpu is about the whole trace: of --thread, --from, --to, --task "
                "and --focus it takes --thread only");
}

static void print(struct wanted *wanted)
{
    struct gt_top *top = &wanted->top;
    if (top->preempted && !top->threads->cpus)
        gt_fail(GT_EXIT_FAILED,
                "%s: does not say when threads lost their CPUs. Record with gotrace --sched",
                top->threads->trace->path);
    if (top->kinds == GT_KINDS_CPU) {
        gt_top_cpu(top->threads, top->most);
    } else if (wanted->wakeups) {
        gt_top_wakeups_print(top->threads, top->most);
    } else if (wanted->holders) {
        gt_top_locks_print(top->threads, wanted->by_lock, top->most);
    } else {
        gt_top_sum_up(top);
        gt_top_print(top);
    }
}

int gt_command_top(int argc, char **argv)
{
    struct gt_trace trace;
    struct wanted wanted = {.top = {.kinds = GT_KINDS_USUAL}};
    struct gt_threads threads = {.arg = &wanted};
    read_options(&wanted, argc, argv);
    gt_need_one_trace(argc, argv, "TRACE");
    check(&wanted);
    wanted.top.threads = &threads;
    threads.span = wanted.top.cpu ? NULL : add_wait;
    threads.sample = wanted.top.cpu ? add_sample : NULL;
    threads.hold = wanted.holders ? add_hold : NULL;
    threads.keep_history = wanted.holders;
    threads.keep_running = wanted.top.preempted || wanted.top.kinds == GT_KINDS_SCHED;
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    print(&wanted);
    return 0;
}
