/* The page of `gotrace why`: see page.h. */
#include "page.h"

#include "scripts/tool/report/deadlocks.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 10 };

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

/* The path ------------------------------------------------------------------------------------ */

static void print_threads(const struct gt_why *why, const struct gt_path_row *row)
{
    if (row->threads > 1 && row->alike)
        printf("%" PRIu32 " x %s", row->threads, gt_name_of_thread(&why->graph, row->thread).text);
    else if (row->threads > 1)
        printf("%" PRIu32 " threads", row->threads);
    else
        printf("%s", gt_name_of_thread(&why->graph, row->thread).text);
}

static void print_between(const struct gt_section *s)
{
    if (s->sampled || s->what || (s->lock != GT_NOBODY && (!s->from || !s->to)))
        return;
    if (s->from_what && s->to_what)
        printf(", between %s and %s", s->from_what, s->to_what);
    else if (s->to_what)
        printf(", from its start to %s", s->to_what);
    else if (s->from_what)
        printf(", from %s to its end", s->from_what);
}

static void print_path_rows(const struct gt_why *why, const struct gt_path *path)
{
    uint64_t rest = path->ns;
    size_t shown = 0;
    printf("%10s %6s %8s  %-7s %s\n", "time", "%", "times", "it", "what, and which thread");
    for (; shown < path->n && shown < ROWS; shown++) {
        const struct gt_path_row *row = &path->row[shown];
        const struct gt_section *s = &why->sections.at[row->section];
        if (shown && row->ns * 200 < path->ns)
            break;
        printf("%10s %5.1f%% %8" PRIu64 "  %-7s %s", gt_duration(row->ns),
               percent(row->ns, path->ns), row->count, gt_section_verb(s),
               gt_section_name(&why->sections, row->section));
        print_between(s);
        printf("; ");
        print_threads(why, row);
        puts("");
        rest -= row->ns;
    }
    if (shown < path->n)
        printf("%10s %5.1f%% %8s  %zu places more\n", gt_duration(rest), percent(rest, path->ns),
               "", path->n - shown);
}

static void print_off_path(struct gt_why *why)
{
    enum { SHOWN = 2 };
    struct gt_off_path off[SHOWN];
    size_t n = gt_why_off_path(why, off, SHOWN);
    if (n)
        puts("Off the path, which costs nothing:");
    for (size_t i = 0; i < n; i++)
        printf("%10s  %" PRIu64 " %s in %s\n", gt_duration(off[i].ns), off[i].threads,
               off[i].threads == 1 ? "thread waited" : "threads waited",
               gt_section_name(&why->sections, off[i].section));
}

static void print_path(struct gt_why *why)
{
    const struct gt_pieces *pieces = &why->pieces;
    if (pieces->n) {
        printf("\nA server: nobody waits for its end. Critical path of %" PRIu64
               " pieces of work of %" PRIu32
               " threads, from input to\nthe next wait for it: %s on average, most %s (at %s)\n",
               pieces->n, pieces->threads, gt_duration(why->path.ns / pieces->n),
               gt_duration(pieces->longest), gt_duration(pieces->longest_at));
        if (why->path.ns > why->to - why->from)
            printf("(Threads that work at the same time all count: together that is %s.)\n",
                   gt_duration(why->path.ns));
    } else {
        printf("\nCritical path: what each moment was waited for, back from the end of ");
        gt_print_thread(why->graph.lane[why->thread].thread);
        puts("");
    }
    print_path_rows(why, &why->path);
    if (why->graph.inferred)
        printf("(Who ended %" PRIu64 " waits for descriptors is inferred, from when they ended.)\n",
               why->graph.inferred);
    if (why->graph.unasked)
        printf("(Who ended %" PRIu64
               " waits for descriptors is not looked for: of a smaller cut it is.)\n",
               why->graph.unasked);
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
    case GT_MORE:
        snprintf(text, sizeof text, "one thread more in the pool %s (now %" PRIu32 ")",
                 gt_name_of_function(it->pool.routine).text, it->pool.threads);
        break;
    case GT_SLOT:
        snprintf(text, sizeof text, "%.1000s had one slot more (now %" PRIu32 ")",
                 why->graph.lock[it->lock]->name, it->slots);
        break;
    case GT_CPUS: snprintf(text, sizeof text, "threads never waited for a CPU"); break;
    }
    return text;
}

static void print_whatifs(const struct gt_why *why)
{
    const struct gt_whatifs *all = &why->whatifs;
    uint64_t length = all->to - all->from;
    printf("\nWhat if (replayed");
    if (length < why->to - why->from)
        printf(", %s from %s on", gt_duration(length), gt_duration(all->from));
    puts("), what to try first on top");
    if (!gt_whatifs_are_sound(all)) {
        bool rough = gt_whatifs_are_rough(all);
        printf("  (%s: a replay of the run as it was takes %s, not %s.)\n",
               rough ? "Only roughly" : "Not told", gt_duration(all->base_ns), gt_duration(length));
        if (!rough)
            return;
    }
    if (!all->n) {
        puts("  (No change to a single place makes it 1 % faster.)");
        return;
    }
    printf("%10s %10s  if\n", "time", "then");
    for (size_t i = 0; i < all->n && i < ROWS; i++) {
        const struct gt_whatif *it = &all->at[i];
        printf("%9.1f%% %10s  %s\n", -100 * it->gain,
               gt_duration((uint64_t)((1 - it->gain) * (double)length)), gt_whatif_name(why, it));
    }
}

/* Parallelism --------------------------------------------------------------------------------- */

static const char *const band_names[GT_BANDS] = {
    [GT_BAND_RUNNING] = "running", [GT_BAND_NO_CPU] = "no CPU", [GT_BAND_CALLS] = "in calls",
    [GT_BAND_LOCKS] = "for locks", [GT_BAND_OTHER] = "waiting",
};

static void print_bar(double value, double most, bool utf8)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
    int i = most > 0 ? (int)(value / most * 8 + 0.5) : 0;
    i = i > 8 ? 8 : !i && value > 0.02 * most ? 1 : i;
    printf("%s", (utf8 ? blocks : letters)[i]);
}

static void print_parallelism(const struct gt_why *why)
{
    const struct gt_survey *v = &why->survey;
    bool utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setlocale(LC_CTYPE, "C");
    printf("\nParallelism: threads at a time, a column is %s, each row up to its most\n",
           gt_duration((v->to - v->from) / GT_COLUMNS));
    for (int k = 0; k < GT_BANDS; k++) {
        double most = 0;
        for (int i = 0; i < GT_COLUMNS; i++)
            most = v->band[k][i] > most ? v->band[k][i] : most;
        if (v->total[k] < 0.005)
            continue;
        printf("%10s |", band_names[k]);
        for (int i = 0; i < GT_COLUMNS; i++)
            print_bar(v->band[k][i], most, utf8);
        printf("| %.2f, most %.1f\n", v->total[k], most);
    }
}

/* The page ------------------------------------------------------------------------------------ */

/* Where hardly anybody waits, what there is to gain is in the computing, or in more of it at a
 * time. */
static void print_no_finding(const struct gt_why *why)
{
    double runs = why->path.ns ? (double)why->path.by_kind[GT_RUNNING] / (double)why->path.ns : 0;
    printf("Nothing that is known as a fault was found; ");
    if (runs >= 0.8)
        printf("%.0f %% of the critical path is computing,\n%.2f threads at a time; ", runs * 100,
               why->survey.total[GT_BAND_RUNNING]);
    puts("what the time went to:");
}

static void print_findings(const struct gt_why *why)
{
    const char *path = gt_printable(why->graph.trace.path);
    puts("");
    gt_print_deadlocks(&why->graph.threads);
    for (size_t i = 0; i < why->findings.n; i++) {
        const struct gt_finding *it = &why->findings.at[i];
        printf("* %s\n  gotrace %s %s", it->text, it->command, path);
        if (it->at != GT_NO_TIME)
            printf("; gotrace view --at=%.3fms %s", (double)it->at / 1e6, path);
        puts("");
    }
    if (!why->findings.n && !gt_any_deadlock(&why->graph.threads))
        print_no_finding(why);
}

static void print_tasks(const struct gt_why *why)
{
    const struct gt_tasks *t = &why->tasks;
    printf("%s: task \"%s\", %" PRIu64 " times: p50 %s, p99 %s, most %s (at %s)\n",
           gt_printable(why->graph.trace.path), gt_printable(why->task), t->n, gt_duration(t->p50),
           gt_duration(t->p99), gt_duration(t->most), gt_duration(t->slowest_at));
    printf("\nThe usual ones, %" PRIu64 " about the median: %s each\n", t->usual_n,
           gt_duration(t->usual.ns / t->usual_n));
    print_path_rows(why, &t->usual);
    printf("\nThe slow ones, %" PRIu64 " from p99 on: %s each\n", t->slow_n,
           gt_duration(t->slow.ns / t->slow_n));
    print_path_rows(why, &t->slow);
}

static void print_more(const struct gt_why *why)
{
    const char *path = gt_printable(why->graph.trace.path);
    const uint64_t *kind = why->path.by_kind;
    bool runs = kind[GT_RUNNING] * 4 > why->path.ns;
    puts("\nFurther:");
    printf("  gotrace top --wakers %s     who ended which waits\n", path);
    if (runs && !why->graph.samples)
        puts("  GOTRACE_CPU_HZ=100, then gotrace why again: which function runs");
    if (!why->graph.threads.cpus)
        puts("  gotrace --sched …, then gotrace why again: who had no CPU");
    printf("  gotrace view %s             all of it on a timeline\n", path);
}

void gt_why_print(struct gt_why *why)
{
    const struct gt_trace *trace = &why->graph.trace;
    if (why->task) {
        print_tasks(why);
        return;
    }
    printf("%s: %s", gt_printable(trace->path), gt_duration(why->to - why->from));
    if (why->to - why->from < trace->ns)
        printf(" from %s on, of %s", gt_duration(why->from), gt_duration(trace->ns));
    printf(", %" PRIu64 " threads, %.2f running on average\n", why->graph.threads.n,
           why->survey.total[GT_BAND_RUNNING]);
    if (trace->lost)
        printf("(The file is cut: what its last %" PRIu64 " bytes say is not counted.)\n",
               trace->lost);
    print_findings(why);
    print_path(why);
    if (!why->pieces.n)
        print_whatifs(why);
    print_parallelism(why);
    print_more(why);
}
