/* `gotrace info`: what is in a trace. */
#include "deadlocks.h"
#include "idle.h"
#include "reading.h"
#include "select.h"
#include "short_name.h"

#include "scripts/tool/tool.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void print_file(const struct gt_trace *t)
{
    uint64_t events = t->events ? t->events : 1;
    printf("%s\n", t->path);
    printf("  %-12s %s, read by go tool trace of Go 1.%d %s\n", "format", t->format->name,
           t->format->minor, t->format->v1 && t->format->minor < 11 ? "to 1.22" : "and later");
    printf("  %-12s %s\n", "duration", gt_duration(t->ns));
    time_t s = (time_t)t->wall_s;
    struct tm *date = s ? gmtime(&s) : NULL; /* NULL too: no year has that number */
    if (date) {
        char text[64];
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", date);
        printf("  %-12s %s.%03d UTC\n", "began", text, (int)(t->wall_ns / 1000000));
    }
    printf("  %-12s %llu bytes", "size", (unsigned long long)t->size);
    if (!t->format->v1)
        printf(" in %llu generations", (unsigned long long)t->generations);
    printf("\n  %-12s %llu, %.1f bytes each, %.1f with all tables\n", "events",
           (unsigned long long)t->events, (double)t->event_bytes / (double)events,
           (double)t->size / (double)events);
}

static void print_tracer(const struct gt_threads *threads)
{
    uint64_t lived = threads->trace->ns;
    if (threads->tracer_ns)
        printf("  %-12s %s of CPU of its own thread, %.2f %% of one\n", "tracer",
               gt_duration(threads->tracer_ns),
               lived ? 100.0 * (double)threads->tracer_ns / (double)lived : 0);
}

static void print_lost(const struct gt_trace *t)
{
    if (t->lost)
        printf("  %-12s cut: its last %llu bytes are no whole %s, and what they say is lost\n",
               "file", (unsigned long long)t->lost, t->format->v1 ? "event" : "generation");
    else if (t->whole)
        printf("  %-12s whole: no part of it is missing\n", "file");
    else
        printf("  %-12s without a mark of its end: up to a second may be missing there\n", "file");
    if (t->odd)
        printf("  %-12s %llu events that cannot have happened as they stand\n", "damage",
               (unsigned long long)t->odd);
}

/* "-": nothing is known of that time. */
static void print_percent(uint64_t ns, uint64_t of)
{
    if (of)
        printf(" %7.1f%%", 100.0 * (double)ns / (double)of);
    else
        printf(" %8s", "-");
}

/* Columns of a thread: what part of its time was what, in ns; all together are its time. */
enum column { ON_CPU, RUNNABLE, IDLE, BLOCKED, CALLS, UNSEEN, COLUMNS };

static const char *const column_names[2][COLUMNS] = {
    {"running", "sched", "idle", "blocked", "calls", ""},
    {"on cpu", "runnable", "idle", "blocked", "calls", "unseen"},
};

struct parts {
    uint64_t time, of[COLUMNS];
    uint64_t kind[GT_KINDS]; /* of BLOCKED and CALLS: in which way */
};

/* What there is an account of; or, in a trace without accounts, what events say. */
static struct parts parts_of(const struct gt_thread_state *t, bool accounts)
{
    const struct gt_shares *s = &t->shares;
    const uint64_t *wait = accounts ? s->wait : t->ns;
    struct parts p = {.time = accounts ? s->time : t->end - t->begin};
    p.of[ON_CPU] = accounts ? s->cpu : t->ns[GT_RUNNING];
    p.of[RUNNABLE] = accounts ? s->queue : t->ns[GT_SCHED];
    p.of[UNSEEN] = accounts ? gt_shares_unseen(s) : 0;
    for (int k = GT_SYNC; k < GT_UNSEEN; k++) {
        double idle = t->ns[k] ? (double)gt_idle_ns(t, (enum gt_kind)k) / (double)t->ns[k] : 0;
        uint64_t its = idle < 1 ? (uint64_t)(idle * (double)wait[k]) : wait[k];
        p.of[IDLE] += its;
        p.kind[k] = wait[k] - its;
        p.of[k == GT_SYSCALL ? CALLS : BLOCKED] += p.kind[k];
    }
    return p;
}

static void print_columns(const struct parts *p, bool accounts)
{
    for (int c = ON_CPU; c < (accounts ? COLUMNS : UNSEEN); c++) {
        for (int k = GT_SYNC; gt_wide_names && c == BLOCKED && k < GT_UNSEEN; k++)
            print_percent(p->kind[k], p->time);
        if (!gt_wide_names || (c != BLOCKED && c != CALLS))
            print_percent(p->of[c], p->time);
    }
}

enum { ROUTINE = 24, NAME = 15, LONG_NAME = 40 }; /* columns */

/* Names are as long as the kernel's, mostly; those of several processes begin with theirs. */
static int columns_of_names(const struct gt_threads *threads)
{
    size_t most = NAME;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next)
        most = strchr(t->name, '/') && strlen(t->name) > most ? strlen(t->name) : most;
    return most < LONG_NAME ? (int)most : LONG_NAME;
}

/* How many columns a text in UTF-8 is shorter than that. */
static int missing_to(int columns, const char *text)
{
    for (; *text && columns; text++)
        columns -= (*text & 0xc0) != 0x80;
    return columns;
}

static void print_thread(const struct gt_thread_state *t, int name, bool accounts)
{
    char tid[24] = "-", routine[512];
    const struct parts p = parts_of(t, accounts);
    if (t->thread != GT_NO_THREAD)
        snprintf(tid, sizeof tid, "%llu", (unsigned long long)t->thread);
    const char *shown =
        *t->routine ? gt_short_name(t->routine, routine, sizeof routine, ROUTINE) : "-";
    printf("  %8s  %-*.*s %s%*s %10s", tid, name, gt_wide_names ? INT_MAX : name,
           *t->name ? t->name : "-", shown, missing_to(ROUTINE, shown), "", gt_duration(t->begin));
    printf(" %9s%s", gt_duration(t->end - t->begin), t->ended ? " " : "+");
    print_columns(&p, accounts);
    puts("");
}

static void print_head(int name, bool accounts)
{
    printf("  %8s  %-*s %-24s %10s %10s", "tid", name, "name", "routine", "from", "lived");
    for (int c = ON_CPU; c < (accounts ? COLUMNS : UNSEEN); c++) {
        for (int k = GT_SYNC; gt_wide_names && c == BLOCKED && k < GT_UNSEEN; k++)
            printf(" %8s", gt_kind_names[k]);
        if (!gt_wide_names || (c != BLOCKED && c != CALLS))
            printf(" %8s", column_names[accounts][c]);
    }
    puts("");
}

/* With what part of its life each thread did what. */
static void print_threads(const struct gt_threads *threads)
{
    struct gt_idle_sum idle = {0};
    bool accounts = threads->accounts;
    int name = columns_of_names(threads);
    printf("\nthreads: %llu\n", (unsigned long long)threads->n);
    print_head(name, accounts);
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (gt_select_thread(t))
            print_thread(t, name, accounts);
    }
    puts("  (+: still there when the trace ends)");
    if (accounts)
        puts("  (unseen: off the CPU without a call that is recorded: page faults, io_uring, locks "
             "inside libc)");
    gt_idle_sum_trace(&idle, gt_select_thread);
    gt_idle_sum_print(&idle);
}

static void print_kinds(const struct gt_trace *t)
{
    bool done[64] = {false};
    puts("\nevents by kind:");
    for (;;) {
        unsigned most = 0;
        for (unsigned k = 1; k < 64; k++) {
            if (!done[k] && t->kinds[k] && (!most || t->kinds[k] > t->kinds[most]))
                most = k;
        }
        if (!most)
            return;
        done[most] = true;
        const char *name = gt_trace_kind(t->format, most);
        printf("  %12llu  %s\n", (unsigned long long)t->kinds[most], name ? name : "(unknown)");
    }
}

static void help(void)
{
    puts("usage: gotrace info [--thread=REGEX] [--idle=REGEX|none] [--wide] TRACE\n\n"
         "Prints the trace's format, duration and size, its threads and what part of their time\n"
         "they were on a CPU, could run and had none, waited for work (idle) or for something\n"
         "else (blocked), or were in calls into the kernel, its events by kind, and whether the\n"
         "file is whole.\n\n"
         "  --thread=REGEX only threads of that name or routine\n"
         "  --idle=REGEX   threads that wait there are idle, too; none: no wait is\n"
         "  --wide         each way of waiting, and names as they are");
    exit(0);
}

int gt_command_info(int argc, char **argv)
{
    static const struct option longs[] = {
        {"help", no_argument, NULL, 'h'}, GT_SELECT_THREAD_OPTIONS, {0}};
    struct gt_trace trace;
    struct gt_threads threads = {0};
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h')
            help();
        if (!gt_select_option(c, optarg))
            return GT_EXIT_USAGE;
    }
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "info: which trace? One");
    gt_open_trace(&trace, argv[optind]);
    gt_read_selected(&threads, &trace);
    print_file(&trace);
    print_tracer(&threads);
    print_lost(&trace);
    gt_print_deadlocks(&threads);
    print_threads(&threads);
    print_kinds(&trace);
    return 0;
}
