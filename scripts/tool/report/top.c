/*
 * `gotrace top`: where threads waited longest. A row is a place in the program that waits in one
 * way: the function it called and the line that called it.
 */
#include "idle.h"
#include "kinds.h"
#include "nameless.h"
#include "places.h"
#include "reading.h"
#include "select.h"
#include "top_cpu.h"
#include "top_locks.h"
#include "top_sched.h"
#include "top_waiting.h"
#include "top_wakeups.h"

#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const struct gt_thread_state *thread; /* NULL: of all */
    enum gt_kind kind;
    const struct gt_callers *stack;
    const char *what;            /* the function that waits */
    const struct gt_where *site; /* who called it; NULL: not known */
    const struct gt_callers *waker;
    const char *end;                   /* the function that ended the wait */
    const struct gt_thread_state *by;  /* whose it was; NULL: several threads' */
    const struct gt_where *waker_site; /* who called that */
    uint64_t ns, count, longest;
    bool ended;
    bool owned; /* not ended, and somebody has what it waits for */
};

struct rows {
    struct row *row;
    size_t n, room;
    struct gt_memo by_key;
};

static struct {
    bool by_thread, cumulative, wakers, preempted, cpu, holders, by_lock, wakeups;
    unsigned kinds; /* a bit each */
    size_t most;    /* rows */
} options;

/* Sums by stack ------------------------------------------------------------------------------ */

struct sums {
    const struct gt_threads *threads;
    struct rows over, cut; /* waits that ended, and those that the end of the trace cuts */
    struct gt_idle_sum idle;
};

enum { ONLY_SCHED = 1u << GT_SCHED };

static struct row *row_at(struct rows *rows, uint64_t key)
{
    uint64_t *slot = gt_need(gt_memo_at(&rows->by_key, key));
    if (!*slot) {
        rows->row = gt_need_room(rows->row, rows->n, &rows->room, sizeof *rows->row);
        rows->row[rows->n] = (struct row){0};
        *slot = ++rows->n;
    }
    return &rows->row[*slot - 1];
}

static void add(void *arg, const struct gt_span *span)
{
    struct sums *sums = arg;
    if (options.wakeups) {
        gt_top_wakeups_add(span);
        return;
    }
    if (options.holders) {
        gt_top_locks_add(sums->threads, span, options.by_lock);
        return;
    }
    uint64_t ns = options.preempted ? span->waker_off : span->ns;
    if (!(options.kinds & 1u << span->kind) || (options.preempted && !ns))
        return;
    if (options.kinds == ONLY_SCHED)
        gt_top_sched_add(sums->threads, span);
    uint64_t number = span->stack ? span->stack->number : 0;
    uint64_t g = options.by_thread ? span->thread->g : 0;
    uint64_t waker = options.wakers && span->waker ? span->waker->number : 0;
    struct row *row = row_at(span->ended ? &sums->over : &sums->cut,
                             (g | waker) << 35 | (uint64_t)span->kind << 32 | number);
    row->waker = span->waker;
    row->by = row->count && row->by != span->by ? NULL : span->by;
    row->ended = span->ended;
    row->owned |= span->thread->at_end && !span->ended;
    row->thread = options.by_thread ? span->thread : NULL;
    row->kind = span->kind;
    row->stack = span->stack;
    row->ns += ns;
    row->count++;
    row->longest = ns > row->longest ? ns : row->longest;
}

/* A row's time is the number of samples. */
static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    (void)ns;
    struct sums *sums = arg;
    uint64_t g = options.by_thread ? thread->g : 0;
    struct row *row = row_at(&sums->over, g << 35 | stack->number);
    row->thread = options.by_thread ? thread : NULL;
    row->stack = stack;
    row->ended = true;
    row->ns++;
    row->count++;
}

/* Places ------------------------------------------------------------------------------------- */

/* A join is ended by no call, but by the end of who is joined. */
static bool is_end_of_thread(const struct gt_callers *waker)
{
    static const char *const joins[] = {"pthread_join", "pthread_tryjoin_np",
                                        "pthread_timedjoin_np", "pthread_clockjoin_np",
                                        "thrd_join"};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        if (strcmp(gt_leaf_of(waker), joins[i]) == 0)
            return true;
    }
    return false;
}

static void find_place(struct row *row)
{
    row->what = gt_leaf_of(row->stack);
    row->site = options.cpu ? NULL : gt_site_of(row->stack);
    row->end = "";
    if (!options.wakers || !row->waker || !row->waker->n)
        return;
    row->end = row->waker->frame[0].func;
    row->waker_site = is_end_of_thread(row->waker) ? NULL : gt_site_of(row->waker);
}

/* Names are interned: pointers will do. */
static int by_place(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = gt_compare_pointers(x->thread, y->thread);
    order = order ? order : (int)x->kind - (int)y->kind;
    order = order ? order : gt_compare_pointers(x->what, y->what);
    order = order ? order : gt_compare_pointers(x->end, y->end);
    order = order ? order : gt_compare_sites(x->site, y->site);
    return order ? order : gt_compare_sites(x->waker_site, y->waker_site);
}

static int by_time(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns ? 1 : strcmp(x->what, y->what);
}

static void join(struct row *to, const struct row *from)
{
    to->ns += from->ns;
    to->count += from->count;
    to->longest = from->longest > to->longest ? from->longest : to->longest;
    to->by = to->by == from->by ? to->by : NULL;
}

/* Stacks that wait at the same place become one row. */
static void fold(struct rows *rows)
{
    size_t n = 0;
    if (!rows->n)
        return;
    for (size_t i = 0; i < rows->n; i++)
        find_place(&rows->row[i]);
    qsort(rows->row, rows->n, sizeof *rows->row, by_place);
    for (size_t i = 1; i < rows->n; i++) {
        if (by_place(&rows->row[n], &rows->row[i]) == 0)
            join(&rows->row[n], &rows->row[i]);
        else
            rows->row[++n] = rows->row[i];
    }
    rows->n = n + 1;
    qsort(rows->row, rows->n, sizeof *rows->row, by_time);
}

/* Takes rows of idle threads out; a wait for what somebody has when the trace ends stays. */
static void set_idle_apart(struct rows *rows, struct gt_idle_sum *idle)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *row = &rows->row[i];
        if (!row->owned && gt_is_idle_at(row->stack, row->kind))
            gt_idle_sum_add(idle, gt_leaf_of(row->stack), gt_site_of(row->stack), row->count,
                            row->ns);
        else
            rows->row[n++] = *row;
    }
    rows->n = n;
}

static bool is_repeated(const struct gt_callers *stack, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (stack->frame[k].func == stack->frame[i].func)
            return true;
    }
    return false;
}

/* Every function on a stack has all of that stack's time, once. */
static struct rows cumulate(const struct rows *rows)
{
    struct rows functions = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const struct gt_callers *stack = rows->row[i].stack;
        for (uint32_t k = 0; stack && k < stack->n; k++) {
            if (is_repeated(stack, k))
                continue;
            struct row *row = row_at(&functions, (uintptr_t)stack->frame[k].func +
                                                     ((uint64_t)rows->row[i].kind << 56));
            row->what = stack->frame[k].func;
            row->kind = rows->row[i].kind;
            row->ended = true;
            join(row, &rows->row[i]);
        }
    }
    if (functions.n)
        qsort(functions.row, functions.n, sizeof *functions.row, by_time);
    return functions;
}

/* Printing ----------------------------------------------------------------------------------- */

static uint64_t total(const struct rows *rows, const struct gt_thread_state *thread)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < rows->n; i++)
        ns += thread == rows->row[i].thread ? rows->row[i].ns : 0;
    return ns;
}

static void print_times(const struct row *row)
{
    printf(" %9llu %9s %9s  %-8s", (unsigned long long)row->count,
           gt_duration(row->ns / row->count), gt_duration(row->longest), gt_kind_names[row->kind]);
}

static void print_end(const struct row *row)
{
    if (!row->ended) {
        printf(", still waiting when the trace ends");
    } else if (*row->end && is_end_of_thread(row->waker)) {
        printf(row->by ? ", ended by the end of thread " : ", ended by the ends of threads");
        if (row->by)
            gt_print_thread(row->by);
    } else if (*row->end) {
        printf(", ended by ");
        gt_print_place(row->end, row->waker_site);
    } else {
        printf(", by itself");
    }
}

/* The rows of one thread, or of all. */
static void print_rows(const struct rows *rows, const struct gt_thread_state *thread, uint64_t all)
{
    uint64_t sum = 0;
    size_t shown = 0;
    for (size_t i = 0; i < rows->n && shown < options.most; i++) {
        const struct row *row = &rows->row[i];
        if (row->thread != thread)
            continue;
        sum += row->ns;
        shown++;
        if (options.cpu)
            printf("%10llu", (unsigned long long)row->count);
        else
            printf("%10s", gt_duration(row->ns));
        printf(" %5.1f%%", all ? 100.0 * (double)row->ns / (double)all : 0);
        if (!options.cumulative)
            printf(" %5.1f%%", all ? 100.0 * (double)sum / (double)all : 0);
        if (!options.cpu)
            print_times(row);
        else
            printf("  ");
        gt_print_place(row->what, row->site);
        if (options.wakers || !row->ended)
            print_end(row);
        puts("");
    }
}

static void print_head(void)
{
    if (options.cpu) {
        printf("%10s %6s%s  %s\n", options.cumulative ? "cum" : "samples", "%",
               options.cumulative ? "" : "    sum", "function");
        return;
    }
    printf("%10s %6s%s %9s %9s %9s  %-8s%s\n",
           options.cumulative  ? "cum"
           : options.preempted ? "no CPU"
                               : "waited",
           "%", options.cumulative ? "" : "    sum", "count", "average", "longest", "kind",
           options.cumulative ? "function" : "what <- where");
}

struct thread_total {
    const struct gt_thread_state *thread;
    uint64_t ns;
};

static int by_total(const void *a, const void *b)
{
    const struct thread_total *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static uint64_t lived(const struct gt_thread_state *t)
{
    uint64_t from = t->begin;
    return gt_select_clip(&from, t->end);
}

static void print_threads(const struct rows *rows, const struct rows *cut,
                          const struct gt_threads *threads)
{
    struct thread_total *totals = gt_need(calloc(threads->n + 1, sizeof *totals));
    size_t n = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next)
        totals[n++] = (struct thread_total){t, total(rows, t) + total(cut, t)};
    qsort(totals, n, sizeof *totals, by_total);
    for (size_t i = 0; i < n && totals[i].ns; i++) {
        const struct gt_thread_state *t = totals[i].thread;
        printf("\nthread ");
        gt_print_thread(t);
        printf(": ");
        if (options.cpu)
            printf("%llu CPU samples\n", (unsigned long long)totals[i].ns);
        else
            printf("waited %s of %s\n", gt_duration(totals[i].ns), gt_duration(lived(t)));
        print_rows(cut, t, totals[i].ns);
        print_rows(rows, t, totals[i].ns);
    }
    free(totals);
}

static void explain_nameless(const struct rows *rows, const struct gt_trace *trace)
{
    struct gt_nameless these = {0};
    for (size_t i = 0; i < rows->n && i < options.most; i++) {
        const struct row *row = &rows->row[i];
        gt_nameless_add(&these, row->site ? row->site->func : row->what, row->ns);
    }
    gt_nameless_explain(&these, trace);
}

static struct row sum_of(const struct rows *rows)
{
    struct row all = {0};
    for (size_t i = 0; i < rows->n; i++)
        join(&all, &rows->row[i]);
    return all;
}

static void print_totals(const struct gt_trace *t, const struct gt_threads *threads,
                         const struct row *all)
{
    uint64_t from = 0, ns = gt_select_clip(&from, t->ns);
    printf("%s: %s, %llu threads; ", t->path, gt_duration(t->ns), (unsigned long long)threads->n);
    if (ns < t->ns)
        printf("from %s to %s: ", gt_duration(from), gt_duration(from + ns));
    if (options.cpu)
        printf("%llu CPU samples\n", (unsigned long long)all->count);
    else if (options.preempted)
        printf("%llu waits for threads that had no CPU, for %s in all\n",
               (unsigned long long)all->count, gt_duration(all->ns));
    else
        printf("%llu waits, %s in all\n", (unsigned long long)all->count, gt_duration(all->ns));
    if (t->lost)
        printf("(The file is cut: what its last %llu bytes say is not counted.)\n",
               (unsigned long long)t->lost);
}

static void print(struct sums *sums, const struct gt_threads *threads)
{
    if (!options.cpu) {
        set_idle_apart(&sums->over, &sums->idle);
        set_idle_apart(&sums->cut, &sums->idle);
    }
    struct row all = sum_of(&sums->over), cut = sum_of(&sums->cut);
    join(&all, &cut);
    fold(&sums->cut);
    if (!options.cumulative)
        fold(&sums->over);
    struct rows over = options.cumulative ? cumulate(&sums->over) : sums->over;
    print_totals(threads->trace, threads, &all);
    if (!options.cpu && !options.cumulative && !options.preempted)
        gt_print_waiting(threads, options.kinds, options.most);
    gt_idle_sum_print(&sums->idle);
    print_head();
    if (options.by_thread)
        print_threads(&over, &sums->cut, threads);
    else
        print_rows(&over, NULL, all.ns);
    if (options.kinds == ONLY_SCHED && !options.by_thread && !options.cumulative)
        gt_top_sched_print(threads, options.most);
    explain_nameless(&over, threads->trace);
}

/* Options ------------------------------------------------------------------------------------ */

static void help(void)
{
    puts(
        "usage: gotrace top [--by-thread|--cum|--wakers|--holders|--by-lock|--wakeups] "
        "[--cpu|--kind=KIND,…]\n"
        "                   [-n ROWS] TRACE\n\n"
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
        "  -n ROWS        so many; otherwise 20, or 5 of each thread");
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

int gt_command_top(int argc, char **argv)
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
                                          {"help", no_argument, NULL, 'h'},
                                          GT_SELECT_OPTIONS,
                                          {0}};
    struct gt_trace trace;
    struct sums sums = {0};
    struct gt_threads threads = {.span = add, .arg = &sums};
    sums.threads = &threads;
    options.kinds = GT_KINDS_USUAL;
    for (int c; (c = getopt_long(argc, argv, "n:h", longs, NULL)) != -1;) {
        switch (c) {
        case 't': options.by_thread = true; break;
        case 'c': options.cumulative = true; break;
        case 'w': options.wakers = true; break;
        case 'l': options.wakers = options.preempted = true; break;
        case 'p': options.cpu = true; break;
        case 'o': options.holders = true; break;
        case 'u': options.wakeups = true; break;
        case 'b': options.holders = options.by_lock = true; break;
        case 'k': options.kinds = gt_read_kinds("top", optarg); break;
        case 'n': options.most = read_rows(optarg); break;
        case 'h': help(); break;
        default:
            if (!gt_select_option(c, optarg))
                return GT_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "top: which trace? One");
    if (options.by_thread + options.cumulative + options.wakers + options.holders +
            options.wakeups >
        1)
        gt_fail(GT_EXIT_USAGE, "top: one of --by-thread, --cum, --wakers, --preempted, --holders, "
                               "--by-lock and --wakeups");
    if (options.cpu &&
        (options.wakers || options.holders || options.wakeups || options.kinds != GT_KINDS_USUAL))
        gt_fail(GT_EXIT_USAGE, "top: --cpu is not about waits");
    if (options.kinds == GT_KINDS_CPU &&
        (options.by_thread || options.cumulative || options.wakers))
        gt_fail(GT_EXIT_USAGE, "top: --kind=cpu is by thread, and no more");
    if (options.wakeups && gt_select_any())
        gt_fail(GT_EXIT_USAGE, "top: --wakeups is about the whole trace: signals have no time");
    if (options.kinds == GT_KINDS_CPU && gt_select_more_than_threads())
        gt_fail(GT_EXIT_USAGE, "top: --kind=cpu is about the whole trace, or its threads");
    if (options.cpu) {
        threads.span = NULL;
        threads.sample = add_sample;
    }
    if (!options.most)
        options.most = options.by_thread ? 5 : 20;
    threads.keep_history = options.holders;
    threads.keep_running = options.preempted || options.kinds == ONLY_SCHED;
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    if (options.preempted && !threads.cpus)
        gt_fail(GT_EXIT_FAILED,
                "%s: does not tell when threads lost their CPUs: trace with GOTRACE_SCHED=on",
                trace.path);
    if (options.kinds == GT_KINDS_CPU)
        gt_top_cpu(&threads, options.most);
    else if (options.wakeups)
        gt_top_wakeups_print(&threads, options.most);
    else if (options.holders)
        gt_top_locks_print(&threads, options.by_lock, options.most);
    else
        print(&sums, &threads);
    return 0;
}
