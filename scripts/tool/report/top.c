/* `gotrace top`: where threads waited longest; and the other reports about waits and CPUs. */
#include "kinds.h"
#include "reading.h"
#include "select.h"
#include "table.h"
#include "top_cpu.h"
#include "top_locks.h"
#include "top_print.h"
#include "top_rows.h"
#include "top_sched.h"
#include "top_wakeups.h"

#include "scripts/tool/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void help(void)
{
    puts(
        "usage: gotrace top [--by-thread|--cum|--wakers|--holders|--by-lock|--wakeups] "
        "[--cpu|--kind=KIND,…]\n"
        "                   [-n ROWS] [--json] TRACE\n\n"
        "Prints where threads waited longest: the function that waited and the place that called "
        "it,\n"
        "how long in all, how often, on average and at most. First, what still waits when the "
        "trace\n"
        "ends.\n\n"
        "  --by-thread    for each thread\n"
        "  --cum          by function: the time of all waits that it is on the stack of\n"
        "  --wakers       who ended the wait: the holder of a lock, the sender of a signal\n"
        "  --preempted    waits that went on while who ended them then had lost its CPU: a lock's\n"
        "                 holder, say; how long it had none (by GOTRACE_SCHED)\n"
        "  --holders      waits for locks: who held them meanwhile, doing what\n"
        "  --by-lock      the same for each lock; held: of the holds that are told, which are "
        "those\n"
        "                 that let a waiter in, and long ones (GOTRACE_HOLD_MIN)\n"
        "  --wakeups      condition variables: waits, how they ended, signals, and those in vain,\n"
        "                 when nobody waited\n"
        "  --cpu          the CPU samples of GOTRACE_CPU_HZ instead, by function\n"
        "  --kind=KINDS   sync, network, syscall, sched (could run and had no CPU), sleep, other, "
        "unseen\n"
        "                 (by GOTRACE_SCHED) or all; otherwise the first four. Or cpu: which\n"
        "                 threads had the CPUs, which stood in run queues meanwhile\n"
        "  -n ROWS        so many; otherwise 20, or 5 of each thread\n"
        "  --json         for programs: gotrace(1) says what is in it");
    puts(gt_select_help);
    exit(0);
}

static size_t read_rows(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || *text < '1' || *text > '9')
        gt_fail(GT_EXIT_USAGE, "top: -n %s: how many rows?", text);
    return n;
}

/* Which of the reports; the rest of it is in what they are told. */
struct wanted {
    bool holders, by_lock, wakeups;
    struct gt_top top;
};

static void add_wait(void *arg, const struct gt_span *span)
{
    struct wanted *wanted = arg;
    struct gt_top *top = &wanted->top;
    if (wanted->wakeups) {
        gt_top_wakeups_add(span);
    } else if (wanted->holders) {
        gt_top_locks_add(top->threads, span, wanted->by_lock);
    } else if (gt_top_add_wait(top, span) && top->kinds == GT_KINDS_SCHED) {
        gt_top_sched_add(top->threads, span);
    }
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
    struct gt_top *top = &wanted->top;
    for (int c; (c = getopt_long(argc, argv, "n:h", longs, NULL)) != -1;) {
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
        case 'n': top->most = read_rows(optarg); break;
        case 'h': help(); break;
        default:
            if (!gt_select_option(c, optarg))
                exit(GT_EXIT_USAGE);
        }
    }
    if (!top->most)
        top->most = top->by_thread ? 5 : 20;
}

/* Ends the program where options say nothing together. */
static void check(const struct wanted *wanted)
{
    const struct gt_top *top = &wanted->top;
    if (top->by_thread + top->cumulative + top->wakers + wanted->holders + wanted->wakeups > 1)
        gt_fail(GT_EXIT_USAGE, "top: one of --by-thread, --cum, --wakers, --preempted, --holders, "
                               "--by-lock and --wakeups");
    if (top->cpu &&
        (top->wakers || wanted->holders || wanted->wakeups || top->kinds != GT_KINDS_USUAL))
        gt_fail(GT_EXIT_USAGE, "top: --cpu is not about waits");
    if (top->kinds == GT_KINDS_CPU && (top->by_thread || top->cumulative || top->wakers))
        gt_fail(GT_EXIT_USAGE, "top: --kind=cpu is by thread, and no more");
    if (wanted->wakeups && gt_select_any())
        gt_fail(GT_EXIT_USAGE, "top: --wakeups is about the whole trace: signals have no time");
    if (top->kinds == GT_KINDS_CPU && gt_select_more_than_threads())
        gt_fail(GT_EXIT_USAGE, "top: --kind=cpu is about the whole trace, or its threads");
}

static void print(struct wanted *wanted)
{
    struct gt_top *top = &wanted->top;
    if (top->preempted && !top->threads->cpus)
        gt_fail(GT_EXIT_FAILED,
                "%s: does not tell when threads lost their CPUs: trace with GOTRACE_SCHED=on",
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
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "top: which trace? One");
    check(&wanted);
    wanted.top.threads = &threads;
    threads.span = wanted.top.cpu ? NULL : add_wait;
    threads.sample = wanted.top.cpu ? add_sample : NULL;
    threads.keep_history = wanted.holders;
    threads.keep_running = wanted.top.preempted || wanted.top.kinds == GT_KINDS_SCHED;
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    print(&wanted);
    return 0;
}
