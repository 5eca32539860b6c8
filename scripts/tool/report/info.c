/* `gotrace info`: the format, size and contents of a trace. */
#include "deadlocks.h"
#include "idle_line.h"
#include "reading.h"
#include "select.h"
#include "setup_facts.h"
#include "short_name.h"
#include "table.h"

#include "encoder/base/sort.h"
#include "encoder/base/utf8.h"
#include "encoder/read/need.h"
#include "encoder/read/validity.h"
#include "scripts/tool/fold.h"
#include "scripts/tool/help.h"
#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_format(const struct gt_trace *t)
{
    uint64_t events = t->events ? t->events : 1;
    printf("%s\n", gt_printable(t->path));
    printf("  %-12s %s, read by go tool trace of Go 1.%d %s\n", "format", t->format->name,
           t->format->minor, t->format->v1 && t->format->minor < 11 ? "to 1.22" : "and later");
    printf("  %-12s %s\n", "duration", gt_duration(t->ns));
    time_t s = (time_t)t->wall_s;
    struct tm *date = s ? gmtime(&s) : NULL; /* NULL, too, for a year out of range */
    if (date) {
        char text[64];
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", date);
        printf("  %-12s %s.%03d UTC\n", "began", text, (int)(t->wall_ns / 1000000));
    }
    printf("  %-12s %llu bytes", "size", (unsigned long long)t->file_bytes);
    if (!t->format->v1)
        printf(" in %s", gt_count(t->generations, "generation"));
    printf("\n  %-12s %llu, %.1f bytes each, %.1f with all tables\n", "events",
           (unsigned long long)t->events, (double)t->event_bytes / (double)events,
           (double)t->file_bytes / (double)events);
}

static void print_tracer(const struct gt_threads *threads)
{
    uint64_t lived = threads->trace->ns;
    const struct gt_halts *halts = &threads->halts;
    if (threads->tracer_ns)
        printf("  %-12s %s of CPU of its own thread, %.2f %% of one CPU\n", "tracer",
               gt_duration(threads->tracer_ns),
               lived ? 100.0 * (double)threads->tracer_ns / (double)lived : 0);
    if (halts->throttled)
        printf("  %-12s %s by the CPU quota of its cgroup, %s of all CPUs together\n", "throttled",
               gt_count(halts->throttled, "time"), gt_duration(halts->throttled_ns));
    if (halts->stopped_ns)
        printf("  %-12s %s, by a signal, a debugger or a frozen cgroup\n", "stopped",
               gt_duration(halts->stopped_ns));
}

/* Why Go's reader refuses the file. NULL: it takes all of it, or the file is only cut. */
static const char *refusal_of(const struct gt_trace *t, char text[static GT_FAULT_TEXT])
{
    struct gt_fault fault;
    return gt_validity_check(t, &fault) || fault.cut ? NULL : gt_fault_text(t, &fault, text);
}

static void print_lost(const struct gt_trace *t)
{
    char text[GT_FAULT_TEXT];
    const char *refusal = refusal_of(t, text);
    if (refusal)
        printf("  %-12s refused by Go's reader: %s\n", "file", refusal);
    else if (t->lost)
        printf("  %-12s cut: its last %llu bytes are no whole %s, and what they say is lost\n",
               "file", (unsigned long long)t->lost, t->format->v1 ? "event" : "generation");
    else if (t->whole)
        printf("  %-12s whole: no part of it is missing\n", "file");
    else if (!t->ours && t->events)
        printf("  %-12s by a Go program, whose traces have no mark of their end\n", "file");
    else
        printf("  %-12s without a mark of its end: up to a second may be missing there\n", "file");
    if (t->odd)
        printf("  %-12s %llu events that cannot have happened as they stand\n", "damage",
               (unsigned long long)t->odd);
}

static void print_file(const struct gt_threads *threads)
{
    print_format(threads->trace);
    gt_setup_print(threads);
    print_tracer(threads);
    print_lost(threads->trace);
}

/* The file's members in JSON, as the columns of `gotrace sql`'s table `trace`. */
static void put_file(const struct gt_threads *threads)
{
    const struct gt_trace *t = threads->trace;
    gt_json_text("format", t->format->name);
    gt_json_number("bytes", t->file_bytes);
    gt_json_number("events", t->events);
    gt_json_number("event_bytes", t->event_bytes);
    gt_json_number("generations", t->generations);
    if (t->wall_s)
        gt_json_number("began_ns", t->wall_s * 1000000000 + t->wall_ns);
    else
        gt_json_null("began_ns");
    char text[GT_FAULT_TEXT];
    const char *refusal = refusal_of(t, text);
    gt_json_truth("whole", t->whole && !refusal);
    if (refusal)
        gt_json_text("refused", refusal);
    else
        gt_json_null("refused");
    gt_json_number("odd_events", t->odd);
    gt_json_truth("accounts", threads->accounts);
    gt_json_number("cpus", threads->cpus);
    gt_json_number("tracer_cpu_ns", threads->tracer_ns);
    gt_setup_put(threads);
}

/* How a thread spent its time, in ns. All parts but `kind` add up to `time`. */
struct parts {
    uint64_t time, cpu, runnable, idle, blocked, calls, unseen;
    uint64_t kind[GT_KINDS]; /* blocked and calls, by kind */
};

static uint64_t lived(const struct gt_thread_state *t)
{
    return t->end - t->begin;
}

/* The parts by the thread's CPU account; without accounts, by its events. */
static struct parts parts_of(const struct gt_thread_state *t, bool accounts)
{
    const struct gt_shares s = gt_shares_within(&t->shares, lived(t));
    const uint64_t *wait = accounts ? s.wait : t->ns;
    struct parts p = {
        .time = accounts ? s.time : lived(t),
        .cpu = accounts ? s.cpu : t->ns[GT_RUNNING],
        .runnable = accounts ? s.queue : t->ns[GT_SCHED],
        .unseen = accounts ? gt_shares_unseen(&s) : 0,
    };
    for (int k = GT_SYNC; k < GT_UNSEEN; k++) {
        double idle = t->ns[k] ? (double)gt_idle_ns(t, (enum gt_kind)k) / (double)t->ns[k] : 0;
        uint64_t its = idle < 1 ? (uint64_t)(idle * (double)wait[k]) : wait[k];
        p.idle += its;
        p.kind[k] = wait[k] - its;
        *(k == GT_SYSCALL ? &p.calls : &p.blocked) += p.kind[k];
    }
    return p;
}

enum { NAME_COLUMNS = 15, LONG_NAME_COLUMNS = 40, ROUTINE_COLUMNS = 24, OTHER_COLUMNS = 90 };

/* The columns of threads. narrow: the terminal has no room for `routine` and `from`. */
struct layout {
    bool accounts, narrow;
    int name;
};

/*
 * The width of the column of names. Most names are as short as the kernel's; a name that begins
 * with its process's name is longer.
 */
static int columns_of_names(const struct gt_threads *threads)
{
    size_t most = NAME_COLUMNS;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        size_t its = strchr(t->name, '/') ? gt_utf8_length(t->name) : 0;
        most = its > most ? its : most;
    }
    return most < LONG_NAME_COLUMNS ? (int)most : LONG_NAME_COLUMNS;
}

static struct layout layout_of(const struct gt_threads *threads)
{
    int name = columns_of_names(threads);
    bool narrow = gt_fold_is_below(name + ROUTINE_COLUMNS + OTHER_COLUMNS);
    return (struct layout){.accounts = threads->accounts,
                           .narrow = narrow,
                           .name = narrow ? gt_width(LONG_NAME_COLUMNS, NAME_COLUMNS) : name};
}

/* The columns that only the text has. */
static void print_names(const struct gt_thread_state *t, const struct layout *layout)
{
    char tid[24] = "-", name[4 * LONG_NAME_COLUMNS + 1], life[40], short_name[512];
    int columns = layout->narrow && !*t->name ? layout->name : ROUTINE_COLUMNS;
    const char *routine = *t->routine ? t->routine : "-";
    if (t->thread != GT_NO_THREAD)
        snprintf(tid, sizeof tid, "%" PRIu64, t->thread);
    snprintf(name, sizeof name, "%.*s", (int)gt_utf8_fit(t->name, (size_t)layout->name), t->name);
    snprintf(life, sizeof life, "%s%s", gt_duration(lived(t)), t->ended ? " " : "+");
    routine = gt_short_name(routine, short_name, sizeof short_name, (size_t)columns);
    gt_cell_words(layout->narrow ? " " : "  ");
    gt_cell_text(NULL, "tid", layout->narrow ? 7 : 8, tid);
    if (layout->narrow) {
        gt_cell_text(NULL, "name or routine", -layout->name, *t->name ? name : routine);
    } else {
        gt_cell_text(NULL, "name", -layout->name, !*t->name ? "-" : gt_wide_names ? t->name : name);
        gt_cell_text(NULL, "routine", -ROUTINE_COLUMNS, routine);
        gt_cell_ns(NULL, "from", 10, t->begin);
    }
    gt_cell_text(NULL, "lived", layout->narrow ? 9 : 10, life);
}

/* Prints a share; "-" if there is no time to share. */
static void print_share(const struct layout *layout, const char *name, const char *head,
                        uint64_t ns, uint64_t of)
{
    enum { HUNDRED = sizeof "100.0%" - 1 };
    int least = head && strlen(head) > HUNDRED ? (int)strlen(head) : HUNDRED;
    int width = layout->narrow ? least : 8;
    if (of)
        gt_cell_share(name, head, width, ns, of);
    else
        gt_cell_unknown(name, head, width);
}

/* Prints the parts: with --wide each kind, else the sums of kinds. */
static void print_parts(const struct parts *p, const struct layout *layout)
{
    static const char *const names[GT_UNSEEN] = {[GT_SYNC] = "sync_ns",
                                                 [GT_NETWORK] = "network_ns",
                                                 [GT_SLEEP] = "sleep_ns",
                                                 [GT_OTHER] = "other_ns"};
    bool sums = !gt_wide_names, accounts = layout->accounts;
    print_share(layout, accounts ? "cpu_ns" : "running_ns", "on CPU", p->cpu, p->time);
    print_share(layout, accounts ? "runnable_ns" : "sched_ns", "runnable", p->runnable, p->time);
    print_share(layout, "idle_ns", "idle", p->idle, p->time);
    for (int k = GT_SYNC; k < GT_UNSEEN; k++)
        print_share(layout, names[k], sums ? NULL : gt_kind_names[k], p->kind[k], p->time);
    print_share(layout, "blocked_ns", sums ? "blocked" : NULL, p->blocked, p->time);
    print_share(layout, "calls_ns", sums ? "calls" : NULL, p->calls, p->time);
    if (accounts)
        print_share(layout, "unseen_ns", "unseen", p->unseen, p->time);
}

static void print_thread(const struct gt_thread_state *t, const struct layout *layout)
{
    const struct parts p = parts_of(t, layout->accounts);
    gt_row_begin();
    print_names(t, layout);
    gt_cell_thread("thread", NULL, t);
    gt_cell_ns("start_ns", NULL, 0, t->begin);
    gt_cell_ns("lived_ns", NULL, 0, lived(t));
    gt_cell_truth("ended", t->ended);
    gt_cell_ns("ns", NULL, 0, p.time);
    gt_cell_ns("unknown_ns", NULL, 0, lived(t) - p.time);
    print_parts(&p, layout);
    gt_row_end();
}

struct choice {
    const struct gt_thread_state *thread;
    uint64_t busy; /* ns of its life in which it was not idle */
};

GT_ORDER(by_busy, struct choice, GT_DOWN(busy) ?: GT_UP(thread->number))

GT_ORDER(by_number, struct choice, GT_UP(thread->number))

/* The threads to print: all, or the `most` that were idle least. Returns how many. */
static size_t choose_threads(struct choice *all, const struct gt_threads *threads, size_t most)
{
    size_t n = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        const struct parts p = parts_of(t, threads->accounts);
        if (gt_select_thread(t))
            all[n++] = (struct choice){t, p.time - p.idle};
    }
    if (n <= most)
        return n;
    qsort(all, n, sizeof *all, by_busy);
    qsort(all, most, sizeof *all, by_number);
    return most;
}

/* Prints one row for each thread: the shares of its life. */
static void print_threads(const struct gt_threads *threads, size_t most)
{
    struct gt_idle_sum idle = {0};
    const struct layout layout = layout_of(threads);
    struct choice *chosen = gt_need(calloc(threads->n + 1, sizeof *chosen));
    size_t n = choose_threads(chosen, threads, most);
    gt_report_words("\nthreads: %" PRIu64 "\n", threads->n);
    gt_head_begin();
    print_thread(&(struct gt_thread_state){.name = "", .routine = ""}, &layout);
    gt_head_end();
    gt_table_begin("by_thread");
    for (size_t i = 0; i < n; i++)
        print_thread(chosen[i].thread, &layout);
    gt_table_end();
    free(chosen);
    gt_report_words("  (+: still there when the trace ends)\n");
    if (layout.accounts)
        gt_report_words("  (unseen: off the CPU without a call that is recorded: page faults, "
                        "io_uring, locks inside libc)\n");
    gt_idle_sum_trace(&idle, gt_select_thread);
    gt_idle_sum_print(&idle);
}

static void print_kinds(const struct gt_trace *t)
{
    bool done[64] = {false};
    gt_report_words("\nevents by kind:\n");
    gt_table_begin("by_kind");
    for (;;) {
        unsigned most = 0;
        for (unsigned k = 1; k < 64; k++) {
            if (!done[k] && t->kinds[k] && (!most || t->kinds[k] > t->kinds[most]))
                most = k;
        }
        if (!most)
            break;
        done[most] = true;
        const char *name = gt_trace_kind(t->format, most);
        gt_row_begin();
        gt_cell_words("  ");
        gt_cell_count("count", "", 12, t->kinds[most]);
        gt_cell_text("kind", "", 0, name ? name : "(unknown)");
        gt_row_end();
    }
    gt_table_end();
}

static void help(void)
{
    puts("usage: gotrace info [options] TRACE\n"
         "       gotrace info --check TRACE\n"
         "\n"
         "Prints the format, duration and size of the trace; what part of its life each\n"
         "thread was on a CPU, runnable (it had no CPU), idle (it waited for work),\n"
         "blocked, or in system calls; its events by kind; and whether it is whole.\n"
         "\n"
         "  --check         only test whether Go's reader accepts the file; if not, print\n"
         "                  which event is wrong and where, with exit status 1\n"
         "  --thread=REGEX  only threads whose name or routine matches\n"
         "  --idle=REGEX    waits in matching functions count as idle, too; none: no wait\n"
         "                  counts as idle\n"
         "  --wide          one column for each kind of wait, and whole names\n"
         "  -n ROWS         only the ROWS threads that were idle least (default: all)\n"
         "  --json          print JSON: gotrace-json(5)\n"
         "  -h, --help      print this");
    exit(0);
}

/* --check: whether Go's reader takes the file. */
static int check(const char *path)
{
    struct gt_trace trace;
    struct gt_fault fault;
    char text[GT_FAULT_TEXT];
    gt_open_trace(&trace, path);
    if (gt_validity_check(&trace, &fault)) {
        printf("%s: Go's reader takes all of it\n", gt_printable(path));
        return 0;
    }
    gt_fault_text(&trace, &fault, text);
    if (fault.cut)
        printf("%s: cut: %s; before that nothing is wrong\n", gt_printable(path), text);
    else
        printf("%s: refused by Go's reader: %s\n", gt_printable(path), text);
    return GT_EXIT_FAILED;
}

int gt_command_info(int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, 'j'}, {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'}, {"idle", required_argument, NULL, GT_OPTION_IDLE},
        GT_SELECT_THREAD_OPTIONS,         {0}};
    struct gt_trace trace;
    struct gt_threads threads = {0};
    bool checks = false;
    size_t most = SIZE_MAX;
    for (int c; (c = gt_option(argc, argv, "n:h", longs)) != -1;) {
        if (c == 'h')
            help();
        if (c == 'j')
            gt_report_json = true;
        else if (c == 'c')
            checks = true;
        else if (c == 'n')
            most = gt_read_rows("info", optarg);
        else if (!gt_select_option(c, optarg))
            return GT_EXIT_USAGE;
    }
    gt_need_one_trace(argc, argv, "TRACE");
    if (checks)
        return check(argv[optind]);
    if (!gt_report_json && !gt_wide_names)
        gt_fold_output();
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    gt_report_begin(&threads);
    if (gt_report_json)
        put_file(&threads);
    else
        print_file(&threads);
    gt_print_deadlocks(&threads);
    print_threads(&threads, most);
    print_kinds(&trace);
    gt_report_end();
    return 0;
}
