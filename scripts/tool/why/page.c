/* The page of `gotrace why`: see page.h. */
#include "answer.h"
#include "joins.h"
#include "page.h"
#include "spinning.h"
#include "wakers.h"

#include "scripts/tool/report/deadlocks.h"
#include "scripts/tool/report/nameless.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/short_name.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of each part is shown. Of all of them the first is taken that has LINES_MOST lines. */
struct limits {
    size_t rows, findings;
};
enum { LINES_MOST = 45 };
static const struct limits limits[] = {{10, 5}, {8, 4}, {6, 3}, {5, 3},
                                       {4, 2},  {3, 2}, {3, 1}, {2, 1}};
static struct limits shown;

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

/* Where a line can be broken: outside of names, or else between callers, or else anywhere. */
enum { OUTSIDE, AT_CALLER, INSIDE, BREAKS };

/* Where in a line its names are. */
struct names {
    int parentheses, angles;
};

/*
 * What a break at *c would be. "read <- ask (a.c:56)", "put(Page&, double)", "Map<int, long>" and
 * "futex wait" are names.
 */
static int break_at(struct names *in, const char *begin, const char *c)
{
    char before = c > begin ? c[-1] : '\n', after = c[1];
    if (*c == '\n')
        *in = (struct names){0};
    in->parentheses += *c == '(' && !strchr(" \n(", before);
    in->parentheses -= *c == ')' && in->parentheses;
    in->angles += *c == '<' && !strchr(" -<", after);
    in->angles -= *c == '>' && before != '-' && in->angles;
    bool call = after == '<' || after == '(' || before == '<' ||
                (before == '-' && c - begin > 1 && c[-2] == '<');
    if (*c == ' ' && call)
        *in = (struct names){0};
    if (after == '<' && c[2] == ' ')
        return AT_CALLER;
    bool futex = c - begin >= 5 && strncmp(c - 5, "futex wait", 10) == 0;
    return call || futex || in->parentheses || in->angles ? INSIDE : OUTSIDE;
}

/*
 * Breaks lines of more than 80 columns at a blank, and indents what goes on below by two. --wide:
 * no line is broken. Returns new memory.
 */
static char *wrap(const char *text)
{
    enum { COLUMNS = 80, LEAST = 16 }; /* no line is broken after so few, but in a name */
    char *out = gt_need(malloc(strlen(text) * 3 + 1)), *to = out;
    char *blank[BREAKS] = {0}; /* the last ones of the line in `out` */
    struct names names = {0};
    size_t column = 0;
    for (const char *c = text; *c; c++) {
        int kind = break_at(&names, text, c);
        column = *c == '\n' ? 0 : column + ((*c & 0xc0) != 0x80);
        if (*c == '\n')
            memset(blank, 0, sizeof blank);
        else if (*c == ' ' && column > (kind == OUTSIDE ? LEAST : 2))
            blank[kind] = to;
        *to++ = *c;
        char *at = blank[OUTSIDE]     ? blank[OUTSIDE]
                   : blank[AT_CALLER] ? blank[AT_CALLER]
                                      : blank[INSIDE];
        if (column <= COLUMNS || !at || gt_wide_names)
            continue;
        size_t rest = (size_t)(to - at) - 1;
        memmove(at + 3, at + 1, rest);
        memcpy(at, "\n  ", 3);
        to = at + 3 + rest;
        column = rest + 2;
        for (int i = 0; i < BREAKS; i++)
            blank[i] = blank[i] && blank[i] > at ? blank[i] + 2 : NULL;
    }
    *to = '\0';
    return out;
}

/* Loops ---------------------------------------------------------------------------------------- */

static void print_loop(const struct gt_why *why, const struct gt_loop *it)
{
    double seconds = (double)(why->to - why->from) / 1e9;
    printf("%7" PRIu64 " %8.1f %8s %8s %8s %8s %5.1f%%  ", it->pieces, (double)it->pieces / seconds,
           gt_duration(it->p50), gt_duration(it->p95), gt_duration(it->p99),
           gt_duration(it->longest), percent(it->busy_ns, it->life_ns));
    printf("%s: %s\n", gt_loop_name(&why->graph, it).text,
           it->rest == why->sections.unknown ? "none, it ends"
                                             : gt_section_name(&why->sections, it->rest));
}

/* Loops that hardly do anything are left out. */
static void print_loops(const struct gt_why *why)
{
    const struct gt_loops *loops = &why->loops;
    if (!loops->n)
        return;
    puts("\nEvent loops and workers: pieces of work, each from input to the next wait for it");
    printf("%7s %8s %8s %8s %8s %8s %6s  %s\n", "pieces", "per s", "median", "p95", "p99",
           "longest", "busy", "thread: waits in");
    for (size_t i = 0; i < loops->n && i < shown.rows / 2; i++) {
        if (loops->at[i].busy_ns * 50 >= loops->at[0].busy_ns)
            print_loop(why, &loops->at[i]);
    }
}

/* The path ------------------------------------------------------------------------------------ */

/* The threads, and among several of them the one that has almost all of the time. */
static void print_threads(const struct gt_why *why, const struct gt_path_row *row)
{
    const struct gt_graph *graph = &why->graph;
    if (row->threads == 1) {
        printf("%s", gt_name_of_one(graph, row->thread).text);
        return;
    }
    if (row->alike)
        printf("%" PRIu32 " x %s", row->threads, gt_name_of_thread(graph, row->thread).text);
    else
        printf("%" PRIu32 " threads", row->threads);
    if (row->most_ns * 10 >= row->ns * 9)
        printf(", mostly %s", gt_name_of_one(graph, row->most).text);
}

static void print_between(const struct gt_section *s)
{
    if (s->sampled || s->what || s->mixed ||
        (s->lock != GT_NOBODY && (!s->from_what || !s->to_what)))
        return;
    if (s->from_what && s->to_what)
        printf(", between %s and %s", s->from_what, s->to_what);
    else if (s->to_what)
        printf(", from its start to %s", s->to_what);
    else if (s->from_what)
        printf(", from %s to its end", s->from_what);
}

/* Rows of the path that are shown; the others are too short. */
static size_t rows_shown(const struct gt_critical_path *path)
{
    size_t n = 0;
    while (n < path->n && n < shown.rows &&
           (!n || gt_wide_names || path->row[n].ns * 200 >= path->ns))
        n++;
    return n;
}

/* The number of the row with that section; 0: it is not shown. */
static size_t row_shown(const struct gt_critical_path *path, uint32_t section)
{
    const struct gt_path_row *row = gt_path_row_of(path, section);
    size_t number = row ? (size_t)(row - path->row) + 1 : 0;
    return number <= rows_shown(path) ? number : 0;
}

/* "of row 1", or where they are if that row is not shown; valid until the next call. */
static const char *words_of_row(const struct gt_why *why, const struct gt_path_row *it)
{
    static char text[4096];
    size_t row = row_shown(&why->path, it->section);
    if (row)
        snprintf(text, sizeof text, "of row %zu", row);
    else
        snprintf(text, sizeof text, "in %.4000s", gt_section_name(&why->sections, it->section));
    return text;
}

/* Whether most of the row's time was in few stretches that took far longer than most did. */
static void print_rare(const struct gt_critical_path *path, const struct gt_path_row *row)
{
    uint64_t ns, least, n = gt_lengths_long(&row->lengths, &ns, &least);
    if (!n || n * 10 > row->count || ns * 2 < row->ns || row->ns * 20 < path->ns)
        return;
    printf("%22srare and long: ", "");
    if (n > 1)
        printf("%" PRIu64 " times %s to ", n, gt_duration(least));
    else
        printf("once ");
    printf("%s, median %s\n", gt_duration(row->longest),
           gt_duration(gt_lengths_percentile(&row->lengths, 500)));
}

static void print_path_row(const struct gt_why *why, const struct gt_critical_path *path, size_t i)
{
    const struct gt_path_row *row = &path->row[i];
    const struct gt_section *s = &why->sections.at[row->section];
    printf("%2zu %8s %5.1f%% %7" PRIu64 "  %-7s ", i + 1, gt_duration(row->ns),
           percent(row->ns, path->ns), row->count, gt_section_verb(s));
    fputs(s->kind == GT_SCHED && !s->what ? "in " : "", stdout);
    fputs(gt_section_name(&why->sections, row->section), stdout);
    print_between(s);
    fputs("; ", stdout);
    print_threads(why, row);
    puts("");
    print_rare(path, row);
}

static void print_path_rows(const struct gt_why *why, const struct gt_critical_path *path)
{
    uint64_t rest = path->ns;
    size_t n = rows_shown(path);
    printf("%2s %8s %6s %7s  %-7s %s\n", "", "time", "%", "times", "state",
           "what, and which thread");
    for (size_t i = 0; i < n; i++) {
        print_path_row(why, path, i);
        rest -= path->row[i].ns;
    }
    if (n < path->n)
        printf("%2s %8s %5.1f%% %7s  %s more\n", "", gt_duration(rest), percent(rest, path->ns), "",
               gt_count(path->n - n, "place"));
}

/* Whether threads poll on the path. known: the section of a poll that does not count. */
static bool polls(const struct gt_why *why, uint32_t known)
{
    const struct gt_finding *it = NULL;
    while ((it = gt_findings_next(&why->findings, "polling", it)) && it->section == known)
        ;
    return it;
}

static void print_off_path(struct gt_why *why)
{
    enum { USUAL = 2 };
    struct gt_off_path off[GT_OFF_MOST];
    size_t n = gt_why_off_path(why, off, gt_wide_names ? GT_OFF_MOST : USUAL);
    if (n && polls(why, GT_NOBODY))
        puts("Off the path, but a thread on it polls, and may wait for this:");
    else if (n && why->unknown.row)
        puts("Off the path, but may be what those waits waited for:");
    else if (n)
        printf("Waits off the critical path%s:\n",
               why->whatifs.off_is_idle ? " (halved in a replay, the run takes as long)" : "");
    for (size_t i = 0; i < n; i++) {
        printf("%10s  ", gt_duration(off[i].ns));
        fputs(off[i].threads == 1 ? gt_name_of_one(&why->graph, off[i].thread).text
                                  : gt_count(off[i].threads, "thread"),
              stdout);
        printf(" waited in %s\n", gt_section_name(&why->sections, off[i].section));
    }
}

/* Whether the page explains the time before the program stood still. */
static bool is_before_standstill(const struct gt_why *why)
{
    return why->still.ns && why->to == why->still.from;
}

/* Why it is taken for a server. */
static const char *const readings[] = {
    [GT_SERVER_ASKED] = "--as=server says so",
    [GT_SERVER_ACCEPTS] = "it accepts connections, and waits for input until it ends",
    [GT_SERVER_BINDS] =
        "it binds an address that others can send to, and waits for input until it ends",
    [GT_SERVER_WAITS] = "it waits for input most of its time",
    [GT_SERVER_ATTENDS] = "its last thread only waits for a signal to end",
};

/* In parentheses, in lines of 80 columns. Frees the text. NULL: nothing. */
static void print_note(char *text)
{
    char *note = NULL;
    if (!text)
        return;
    if (asprintf(&note, "(%s)", text) < 0)
        note = NULL;
    char *wrapped = wrap(gt_need(note));
    puts(wrapped);
    free(wrapped);
    free(note);
    free(text);
}

/* Threads that only their sleeps tell to have gone on until a flag stopped them; or NULL. */
static char *stopped_by_flag(const struct gt_why *why)
{
    uint32_t first = 0;
    size_t n = gt_joins_alike(&why->graph, &first);
    char *text = NULL, more[60] = "";
    if (!n)
        return NULL;
    if (n > 1)
        snprintf(more, sizeof more, " So %s more.", n == 2 ? "is one thread" : "are other threads");
    if (asprintf(&text,
                 "%.1000s slept about as long in each of %" PRIu64
                 " rounds, and ended within one after its join began: it is taken to "
                 "run until a flag stops it.%s",
                 gt_name_of_one(&why->graph, first).text, why->graph.lane[first].alike, more) < 0)
        text = NULL;
    return gt_need(text);
}

char *gt_why_system_time(struct gt_why *why)
{
    enum { PATH_PERCENT = 25, LEAST_PERCENT = 50, FAULT_NS = 10000 /* of a slow one */ };
    const struct gt_path_row *row = why->path.row, *end = row + why->path.n;
    while (row < end && why->sections.at[row->section].kind != GT_RUNNING)
        row++;
    if (row == end || why->sections.at[row->section].sampled)
        return NULL;
    uint32_t delay = gt_section_delay_of(&why->sections, row->section);
    uint64_t without = delay == row->section ? 0 : gt_path_ns_of(&why->path, delay);
    const struct gt_shares *its = &why->graph.lane[row->most].thread->shares;
    uint64_t calls = its->told[GT_SYSCALL] + its->told[GT_NETWORK], cpu = its->cpu;
    uint64_t system = its->used.of[GT_USED_SYSTEM], faults = its->used.of[GT_USED_TOUCHED];
    uint64_t ns = system > calls ? system - calls : 0;
    if (!(its->used.known & gt_used_bit(GT_USED_SYSTEM)) || !cpu ||
        ns * 100 < cpu * LEAST_PERCENT || (row->ns + without) * 100 < why->path.ns * PATH_PERCENT)
        return NULL;
    char known[64] = "", *text = NULL;
    if (faults * FAULT_NS > ns)
        snprintf(known, sizeof known, "%" PRIu64 " page faults, and ", faults);
    if (asprintf(&text,
                 "The kernel has at least %.0f %% of the CPU time of %s, outside recorded calls: "
                 "%scalls that are short or not recorded.",
                 percent(ns < cpu ? ns : cpu, cpu), gt_name_of_one(&why->graph, row->most).text,
                 known) < 0)
        text = NULL;
    return gt_need(text);
}

static void print_path(struct gt_why *why)
{
    const struct gt_pieces *pieces = &why->pieces;
    if (pieces->n) {
        printf("\nA server: %s. Critical path of %s of work of %s,\n"
               "from input to the next wait for it: %s on average, at most %s (at %s).\n"
               "(With --as=batch: why the run ended no sooner.)\n",
               readings[why->reading], gt_count(pieces->n, "piece"),
               gt_count(pieces->threads, "thread"), gt_duration(why->path.ns / pieces->n),
               gt_duration(pieces->longest), gt_duration(pieces->longest_at));
        if (why->path.ns > why->to - why->from)
            printf("(Threads that work at the same time all count: together that is %s.)\n",
                   gt_duration(why->path.ns));
    } else {
        printf("\nCritical path: what was waited for, back from %s ",
               is_before_standstill(why) ? "when it stood still:" : "the end of");
        gt_print_thread(why->graph.lane[why->thread].thread);
        puts("");
        if (why->loops.n)
            puts("(Why the run ended no sooner. With --as=server: its pieces of work.)");
    }
    print_path_rows(why, &why->path);
    print_note(gt_why_system_time(why));
    print_note(gt_wakers_guessed(why));
    print_note(gt_wakers_unknown(why));
    print_note(why->pieces.n ? NULL : stopped_by_flag(why));
    if (why->graph.unasked)
        printf("(Who ended %s for descriptors is not looked for: of a smaller cut it is.)\n",
               gt_count(why->graph.unasked, "wait"));
    if (!why->pieces.n)
        print_off_path(why);
}

/* What if ------------------------------------------------------------------------------------- */

const char *gt_whatif_name(const struct gt_why *why, const struct gt_whatif *it)
{
    static char text[4096];
    switch (it->kind) {
    case GT_HALF:
        snprintf(text, sizeof text, "%s %s took half as long",
                 why->sections.at[it->section].what ? "" : "running in",
                 gt_section_name(&why->sections, it->section));
        return text + (*text == ' ');
    case GT_FREE_LOCK:
        snprintf(text, sizeof text, "nobody ever waited for %.1000s%s%.1000s",
                 why->graph.lock[it->lock]->name, *it->taken ? ", taken in " : "", it->taken);
        break;
    case GT_ACROSS:
        snprintf(text, sizeof text, "%.1000s%s%.1000s%s was not held during %.1000s",
                 why->graph.lock[it->lock]->name, *it->taken ? ", taken in " : "", it->taken,
                 *it->taken ? "," : "", gt_section_name(&why->sections, it->section));
        break;
    case GT_MORE:
        snprintf(text, sizeof text, "one thread more in the pool %s (now %" PRIu32 ")",
                 gt_name_of_pool(&it->pool).text, it->pool.threads);
        break;
    case GT_EVEN:
        snprintf(text, sizeof text, "the %" PRIu32 " threads %s had equal parts of the work",
                 it->pool.threads, gt_name_of_pool(&it->pool).text);
        break;
    case GT_SLOT:
        snprintf(text, sizeof text, "%.1000s%s%.1000s%s had one slot more (now %" PRIu32 ")",
                 why->graph.lock[it->lock]->name, *it->taken ? ", taken in " : "", it->taken,
                 *it->taken ? "," : "", it->slots);
        break;
    case GT_NO_POLL:
        snprintf(text, sizeof text, "what %.4000s asks for woke it at once",
                 gt_section_name(&why->sections, it->section));
        break;
    case GT_CPUS: snprintf(text, sizeof text, "threads never waited for a CPU"); break;
    }
    return text;
}

/* A thread's first or last stretch, which has no name of its own. */
static bool is_at_an_end(const struct gt_why *why, const struct gt_whatif *it)
{
    const struct gt_section *s = &why->sections.at[it->section];
    return it->kind == GT_HALF && s->kind == GT_RUNNING && (!s->from_what || !s->to_what);
}

/* Why a replay of the run as it was takes longer or shorter. */
static void print_why_rough(const struct gt_why *why, bool differs)
{
    const struct gt_whatifs *all = &why->whatifs;
    uint64_t delays = why->path.by_kind[GT_SCHED];
    printf(",\n  %s ", differs ? "because" : "but");
    if (all->passes)
        printf("how long a thread held the lock is unknown after %s for it.\n",
               gt_count(all->passes, "wait"));
    else if (all->forced)
        printf("the waker is unknown in %s.\n", gt_count(all->forced, "wait"));
    else if (why->graph.inferred)
        printf("wakers are inferred, of %s.\n", gt_count(why->graph.inferred, "wait"));
    else if (delays * 20 > why->path.ns)
        printf("threads had no CPU for %.0f %% of the path.\n", percent(delays, why->path.ns));
    else
        puts("threads take locks in another order in it.");
}

const char *const gt_whatif_bases[] = {[GT_REPLAYED] = "replayed",
                                       [GT_BOUNDED] = "bounded",
                                       [GT_INFERRED] = "inferred",
                                       [GT_SHARED] = "shared"};

/* What the words in the column "how" mean; a replay needs no explanation. */
static const char *const meanings[] = {
    [GT_BOUNDED] = "no more than the time spent there, though the replay gains more.",
    [GT_INFERRED] = "times tell which thread woke which, or that a queue is shared.",
    [GT_SHARED] = "threads take their work from one queue: the faster one takes more of it.",
};

static void explain_bases(const struct gt_whatif *at, size_t n)
{
    for (size_t basis = 0; basis < sizeof meanings / sizeof *meanings; basis++) {
        bool any = false;
        for (size_t i = 0; i < n; i++)
            any |= at[i].basis == basis;
        if (any && meanings[basis])
            printf("  %s: %s\n", gt_whatif_bases[basis], meanings[basis]);
    }
}

static void print_name(const struct gt_why *why, const struct gt_whatif *it)
{
    fputs(gt_whatif_name(why, it), stdout);
    if (is_at_an_end(why, it))
        print_between(&why->sections.at[it->section]);
    putchar('\n');
}

static void print_whatif(const struct gt_why *why, const struct gt_whatif *it)
{
    const struct gt_whatifs *all = &why->whatifs;
    const char *lock = it->kind == GT_FREE_LOCK ? why->graph.lock[it->lock]->name : "";
    size_t row = it->kind == GT_HALF ? row_shown(&why->path, it->section) : 0;
    size_t delay =
        row ? row_shown(&why->path, gt_section_delay_of(&why->sections, it->section)) : 0;
    printf("%6.1f%% %8s  %-8s  ", -100 * it->gain,
           gt_duration((uint64_t)((1 - it->gain) * (double)(all->to - all->from))),
           gt_whatif_bases[it->basis]);
    if (delay && delay != row)
        printf("rows %zu and %zu took half as long\n", row, delay);
    else if (row)
        printf("row %zu took half as long\n", row);
    else if (it->kind == GT_FREE_LOCK && !gt_wide_names && isalpha(*lock))
        printf("nobody ever waited for %s\n", lock);
    else
        print_name(why, it);
}

static void print_whatifs(const struct gt_why *why)
{
    enum {
        ROUGH_PERCENT = 5, /* gt_whatifs_are_exact allows less */
        SPINS_PART = 10,   /* spinning on more than a tenth of the path */
    };
    const struct gt_whatifs *all = &why->whatifs;
    uint64_t length = all->to - all->from;
    double unchanged = 100 * gt_whatifs_unchanged(all);
    int off = (int)(unchanged < 100 ? 100 - unchanged : unchanged - 100);
    bool rough = !gt_whatifs_are_exact(all), told = gt_whatifs_are_rough(all);
    bool blind = polls(why, all->poll);
    printf("\nWhat if: a replay without any change takes %s%.1f %% of the real time",
           rough && unchanged < 100 ? "only " : "", unchanged);
    if (rough)
        print_why_rough(why, off >= ROUGH_PERCENT);
    else
        puts("");
    if (length < why->to - why->from)
        printf("  Only %s of the run are replayed, from %s on.\n", gt_duration(length),
               gt_duration(all->from));
    if (told && gt_spinning_on(&why->path, &why->sections) * SPINS_PART > why->path.ns)
        puts("  It does not know what threads spin for: the times below may be off.");
    else if (told && all->n && blind)
        puts("  It does not know what threads poll for: the times below may be off.");
    if (!told)
        puts("  So no predictions are printed.");
    else if (off >= ROUGH_PERCENT)
        printf("  Treat the times below as wrong by %d %% or more.\n", off);
    if (!told)
        return;
    if (all->starves) {
        puts("  The replay cannot tell: when readers let a writer in depends on all of them.");
        return;
    }
    if (!all->n && why->unknown.row) {
        printf("  The replay cannot tell: nobody is known to end the waits %s.\n",
               words_of_row(why, why->unknown.row));
        return;
    }
    if (!all->n && blind) {
        puts("  The replay cannot tell: it does not know what threads poll for.");
        return;
    }
    if (!all->n) {
        puts("  None of the changes that were replayed makes the run even 1 % shorter.");
        return;
    }
    printf("%7s %8s  %-8s  if\n", "time", "then", "how");
    size_t rows = all->n < shown.rows ? all->n : shown.rows;
    for (size_t i = 0; i < rows; i++)
        print_whatif(why, &all->at[i]);
    explain_bases(all->at, rows);
}

/* Parallelism --------------------------------------------------------------------------------- */

static const char *const band_names[GT_BANDS] = {
    [GT_BAND_RUNNING] = "running", [GT_BAND_NO_CPU] = "no CPU", [GT_BAND_CALLS] = "calls",
    [GT_BAND_LOCKS] = "locks",     [GT_BAND_OTHER] = "waiting",
};

static void print_parallelism(const struct gt_why *why)
{
    const struct gt_survey *v = &why->survey;
    bool utf8 = gt_bars_are_utf8();
    printf("\nParallelism (threads): each column is %s; %s\n",
           gt_duration((v->to - v->from) / GT_COLUMNS),
           utf8 ? "a full block is the row's maximum" : "# is the row's maximum, then *+=-:.");
    for (int k = 0; k < GT_BANDS; k++) {
        double most = 0;
        for (int i = 0; i < GT_COLUMNS; i++)
            most = v->band[k][i] > most ? v->band[k][i] : most;
        if (v->total[k] < 0.005)
            continue;
        printf("%7s %5.2f |", band_names[k], v->total[k]);
        for (int i = 0; i < GT_COLUMNS; i++)
            fputs(gt_bar(v->band[k][i], most, utf8), stdout);
        printf(gt_wide_names ? "| most %.1f\n" : "|\n", most);
    }
}

/* The page ------------------------------------------------------------------------------------ */

static bool is_loop_told(const struct gt_findings *findings)
{
    return gt_findings_next(findings, "blocked_loop", NULL) ||
           gt_findings_next(findings, "busy_loop", NULL) ||
           gt_findings_next(findings, "restless_loop", NULL);
}

/* Makes one line of the text's first sentence, which wrap() breaks where lines are full. */
static void join_lines(char *text, const char *end)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool breaks = *from == '\n' && from < end && !gt_wide_names;
        from += breaks ? 2 : 0; /* its indentation; the last blank of it stays */
        *to++ = *from;
    }
    *to = '\0';
}

/* The first one is what limits the run: what would help follows its first sentence. */
static void print_finding(const struct gt_why *why, const struct gt_finding *it, bool first)
{
    const char *path = gt_to_type(why->graph.trace.path), *end = strstr(it->text, ".\n");
    bool blind = strcmp(it->name, "polling") == 0 && it->section != why->whatifs.poll;
    const char *change = first && !why->pieces.n && !blind ? gt_answer_change(why, it) : "";
    int length = end ? (int)(end + 1 - it->text) : (int)strlen(it->text);
    char *text = NULL;
    if (asprintf(&text, "* %.*s%s%s%s", length, it->text, *change ? "\n  " : "", change,
                 end ? end + 1 : "") < 0)
        text = NULL;
    join_lines(gt_need(text), text + length);
    char *wrapped = wrap(text);
    printf("%s\n  gotrace %s %s", wrapped, it->command, path);
    if (it->at != GT_NO_TIME)
        printf("; gotrace view --at=%.3fms %s", (double)it->at / 1e6, path);
    puts("");
    free(wrapped);
    free(text);
}

static void print_standstill(struct gt_why *why)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = gt_need(open_memstream(&text, &size));
    gt_answer_print_standstill(out, why);
    fclose(out);
    char *wrapped = wrap(gt_need(text));
    printf("%s%s", *wrapped ? "\n" : "", wrapped);
    free(wrapped);
    free(text);
}

static bool print_answer(const struct gt_why *why)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = gt_need(open_memstream(&text, &size));
    bool answered = gt_answer_print(out, why);
    fclose(out);
    char *wrapped = wrap(gt_need(text));
    fputs(wrapped, stdout);
    free(wrapped);
    free(text);
    return answered;
}

static void print_findings(const struct gt_why *why)
{
    const char *path = gt_to_type(why->graph.trace.path);
    bool deadlock = gt_any_deadlock(&why->graph.threads);
    if (!deadlock) /* which begins with an empty line */
        puts("");
    if (why->pieces.n && !is_loop_told(&why->findings))
        printf("No event loop or worker was blocked: the longest piece of work took %s.\n",
               gt_duration(why->pieces.longest));
    gt_print_deadlocks(&why->graph.threads);
    if (deadlock)
        gt_answer_print_next(stdout, why);
    bool answered = !deadlock && print_answer(why);
    for (size_t i = 0; i < why->findings.n && i < shown.findings; i++)
        print_finding(why, &why->findings.at[i], !i && !answered && !deadlock);
    if (why->findings.n > shown.findings)
        printf("(%s more: gotrace why --wide %s)\n",
               gt_count(why->findings.n - shown.findings, "finding"), path);
}

static void print_tasks(const struct gt_why *why)
{
    const struct gt_tasks *t = &why->tasks;
    printf("%s: task \"%s\", %s: p50 %s, p99 %s, most %s (at %s)\n",
           gt_printable(why->graph.trace.path), gt_printable(why->task), gt_count(t->n, "time"),
           gt_duration(t->p50), gt_duration(t->p99), gt_duration(t->most),
           gt_duration(t->slowest_at));
    printf("\nThe usual ones, %" PRIu64 " about the median: %s each\n", t->usual_n,
           gt_duration(t->usual.ns / t->usual_n));
    print_path_rows(why, &t->usual);
    printf("\nThe slow ones, %" PRIu64 " from p99 on: %s each\n", t->slow_n,
           gt_duration(t->slow.ns / t->slow_n));
    print_path_rows(why, &t->slow);
}

static void print_more(const struct gt_why *why)
{
    const char *path = gt_to_type(why->graph.trace.path);
    const uint64_t *kind = why->path.by_kind;
    bool runs = kind[GT_RUNNING] * 4 > why->path.ns;
    uint64_t guessed = 0;
    for (size_t i = 0; i < why->path.n; i++)
        guessed += why->path.row[i].guessed;
    puts("\nFurther:");
    /* gotrace top knows no more wakers than the trace. */
    bool ask = (why->unknown.row || guessed) && !gt_graph_knows_channels(&why->graph);
    if (ask && why->unknown.row && row_shown(&why->path, why->unknown.row->section))
        printf("  gotrace -f -s all …, then gotrace why again: who ended the waits %s\n",
               words_of_row(why, why->unknown.row));
    else if (ask)
        puts("  gotrace -f -s all …, then gotrace why again: who ended waits, for certain");
    else if (!why->unknown.row && !guessed)
        printf("  gotrace top --wakers %s     who ended which waits\n", path);
    if (runs && !why->graph.samples)
        puts("  gotrace --cpu-hz=100 …, then gotrace why again: which function runs");
    if (!why->graph.threads.cpus)
        puts("  gotrace --sched …, then gotrace why again: who had no CPU");
    printf("  gotrace view %s             all of it on a timeline\n", path);
}

/* How much of the path is in functions without names, in new memory; NULL: little. */
static char *without_names(const struct gt_why *why)
{
    struct gt_nameless these = {0};
    for (size_t i = 0; i < why->path.n; i++) {
        const struct gt_section *s = &why->sections.at[why->path.row[i].section];
        gt_nameless_add(&these, s->func, s->file, why->path.row[i].ns);
    }
    return gt_nameless_text(&these, "critical path is in", &why->graph.trace);
}

static void print_page(struct gt_why *why, const char *nameless)
{
    const struct gt_trace *trace = &why->graph.trace;
    fputs(gt_cut_words(trace), stdout);
    if (why->task) {
        print_tasks(why);
        return;
    }
    printf("%s: %s", gt_printable(trace->path), gt_duration(why->to - why->from));
    if (is_before_standstill(why) && !why->from)
        printf(" before it stood still, of %s", gt_duration(trace->ns));
    else if (why->to - why->from < trace->ns)
        printf(" from %s on, of %s", gt_duration(why->from), gt_duration(trace->ns));
    printf(", %s, %.2f running on average\n", gt_count(why->graph.threads.n, "thread"),
           why->survey.total[GT_BAND_RUNNING]);
    print_standstill(why);
    print_findings(why);
    print_loops(why);
    print_path(why);
    if (!why->pieces.n)
        print_whatifs(why);
    print_parallelism(why);
    if (nameless)
        printf("\n%s", nameless);
    print_more(why);
}

/* The page with those limits, as text; *lines: how many. */
static char *page_within(struct gt_why *why, const char *nameless, struct limits most,
                         size_t *lines)
{
    FILE *out = stdout;
    char *text = NULL;
    size_t size = 0;
    shown = most;
    stdout = gt_need(open_memstream(&text, &size));
    print_page(why, nameless);
    fclose(stdout);
    stdout = out;
    *lines = 0;
    for (const char *c = text; *c; c++)
        *lines += *c == '\n';
    return text;
}

void gt_why_print(struct gt_why *why)
{
    enum { ALL = 1000000 };
    size_t lines, n = sizeof limits / sizeof *limits;
    char *text = NULL, *nameless = without_names(why);
    if (gt_wide_names)
        text = page_within(why, nameless, (struct limits){ALL, ALL}, &lines);
    for (size_t i = 0; !text || (!gt_wide_names && lines > LINES_MOST && i < n); i++) {
        free(text);
        text = page_within(why, nameless, limits[i], &lines);
    }
    fputs(text, stdout);
    free(text);
    free(nameless);
}
