/* See answer.h. */
#include "answer.h"

#include "spinning.h"

#include "scripts/tool/report/roles.h"
#include "scripts/tool/tool.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* "main waits in pthread_join <- main (a.c:70) for loader", "worker waits for m, held by loader" */
static void print_waiter(FILE *out, struct gt_why *why, uint32_t thread)
{
    uint32_t other = gt_standstill_after(&why->graph, thread);
    const char *lock = gt_standstill_lock(&why->graph, thread);
    fprintf(out, "  %s waits", gt_name_of_one(&why->graph, thread).text);
    if (*lock && (other != GT_NOBODY || !isdigit(*lock))) /* an address alone says nothing */
        fprintf(out, " for %s", lock);
    if (!*lock || other == GT_NOBODY)
        fprintf(out, " in %s",
                gt_section_name(&why->sections, gt_standstill_section(&why->sections, thread)));
    if (other != GT_NOBODY)
        fprintf(out, "%s%s", *lock ? ", held by " : " for ",
                gt_name_of_one(&why->graph, other).text);
    fputs("\n", out);
}

void gt_answer_print_next(FILE *out, const struct gt_why *why)
{
    fprintf(out, "  gotrace top %s; while it runs: gotrace stacks PID\n",
            gt_to_type(why->graph.trace.path));
}

void gt_answer_print_standstill(FILE *out, struct gt_why *why)
{
    enum { WAITERS = 3 };
    const struct gt_standstill *still = &why->still;
    if (!still->ns)
        return;
    fprintf(out, "Stood still from %s to its end, for %s, while %zu thread%s:\n",
            gt_duration(still->from), gt_duration(still->ns), still->n,
            still->n == 1 ? " waits" : "s wait");
    for (size_t i = 0; i < still->n && i < WAITERS; i++)
        print_waiter(out, why, still->waiter[i]);
    gt_answer_print_next(out, why);
}

/* The least part of the path, in percent, for which the answer mentions computing. */
enum { COMPUTES_PERCENT = 80 };

/* Gains of a run that differ by less are equal: other runs have them in the other order. */
#define GAIN_EQUAL 0.01

static bool is_about_cpus(const struct gt_finding *it)
{
    static const char *const names[] = {"slow_wakeup", "preempted"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(it->name, names[i]) == 0)
            return true;
    }
    return false;
}

/*
 * What the answer is about: the first change. CPUs that other processes had limit the run only if
 * they would save twice as much as all that the program can do.
 */
static const struct gt_whatif *first_change(const struct gt_why *why)
{
    const struct gt_whatifs *all = &why->whatifs;
    const struct gt_whatif *first = all->at, *last = all->n ? &all->at[all->n - 1] : NULL;
    if (!last || !gt_whatifs_are_rough(all))
        return NULL;
    return last->elsewhere && last->gain > 2 * first->gain ? last : first;
}

/*
 * Whether the finding is about a lock, and the change about anything but that lock and its holders.
 * Threads need the GIL to compute, which sections do not tell.
 */
static bool is_elsewhere(const struct gt_why *why, const struct gt_finding *it,
                         const struct gt_whatif *first)
{
    if (it->lock == GT_NOBODY || !first)
        return false;
    enum gt_kind kind = why->sections.at[first->section].kind;
    if (first->kind == GT_HALF)
        return why->sections.at[first->section].lock != it->lock && first->section != it->section &&
               (strcmp(it->name, "gil") != 0 || kind != GT_RUNNING);
    bool unlocks = first->kind == GT_FREE_LOCK || first->kind == GT_ACROSS;
    return !(unlocks || first->kind == GT_SLOT) || first->lock != it->lock;
}

/* Whether the first finding that counts says what limits the run. */
static bool is_told(const struct gt_why *why, const struct gt_whatif *first)
{
    bool cpus = first && first->kind == GT_CPUS;
    bool spins = gt_spinning_on(&why->path, &why->sections) * 2 > why->path.ns;
    for (size_t i = 0; i < why->findings.n; i++) {
        const struct gt_finding *it = &why->findings.at[i];
        bool off_path = (strcmp(it->name, "busy_waiting") == 0 && !spins) ||
                        strcmp(it->name, "restless_loop") == 0;
        if ((cpus || !is_about_cpus(it)) && !off_path)
            return !is_elsewhere(why, it, first);
    }
    return false;
}

/* The row for the time without a CPU of what the row is about; NULL: hardly any of the path. */
static const struct gt_path_row *delay_of(const struct gt_why *why, const struct gt_path_row *row)
{
    enum { LEAST_PERCENT = 2 };
    uint32_t section = gt_section_delay_of(&why->sections, row->section);
    const struct gt_path_row *its =
        section == row->section ? NULL : gt_path_row_of(&why->path, section);
    return its && its->ns * 100 >= why->path.ns * LEAST_PERCENT ? its : NULL;
}

static double part_of_path(const struct gt_why *why, uint64_t ns)
{
    return 100 * (double)ns / (double)why->path.ns;
}

/* Whether threads wait there for what others do. But who connects has to get through first. */
static bool is_for_others(const struct gt_section *s)
{
    bool connects = s->what && gt_is_connect(s->what);
    return s->kind == GT_SYNC || (s->kind == GT_NETWORK && !connects);
}

/* What threads did longest meanwhile may set the pace: not what waits for others itself. */
static void print_unknown(FILE *out, const struct gt_why *why)
{
    enum { LOOKED = 8 };
    struct gt_off_path off[LOOKED];
    size_t n = gt_why_off_path(why, off, LOOKED), i = 0;
    fputs("  Nobody is known to end these waits: what sets the pace may be elsewhere.\n", out);
    while (i < n && is_for_others(&why->sections.at[off[i].section]))
        i++;
    if (i < n)
        fprintf(out, "  Meanwhile %s waited in %s for %s.\n", gt_count(off[i].threads, "thread"),
                gt_section_name(&why->sections, off[i].section), gt_duration(off[i].ns));
}

/*
 * Waits for a condition variable or a semaphore that mostly ended without a signal or post: all
 * threads that could have woken them are in the trace.
 */
static void print_timed_out(FILE *out, const struct gt_why *why, const struct gt_path_row *row)
{
    const struct gt_section *s = &why->sections.at[row->section];
    uint64_t waits = 0, woken = 0;
    if (s->kind != GT_SYNC || !s->what || (!strstr(s->what, "timed") && !strstr(s->what, "clock")))
        return;
    for (uint32_t i = 0; i < why->graph.spots; i++) {
        const struct gt_place_waits *p = &why->survey.place[i];
        waits += p->section == row->section ? p->count : 0;
        woken += p->section == row->section ? p->woken : 0;
    }
    if (waits && woken * 2 < waits)
        fprintf(out, "  %" PRIu64 " of %s there timed out: no thread ended them.\n", waits - woken,
                gt_count(waits, "wait"));
}

/* Waits with a time limit that are all equally long: with an answer, they would differ. */
static void print_limit(FILE *out, const struct gt_path_row *row)
{
    enum { LEAST_NS = 10000000, LEAST_WAITS = 5, EQUAL_PERCENT = 97 };
    uint64_t longest = row->lengths.longest, part = 0, n;
    while (part < 1000 &&
           gt_lengths_percentile(&row->lengths, part) * 100 < longest * EQUAL_PERCENT)
        part++;
    n = row->lengths.count * (1000 - part) / 1000;
    if (n >= LEAST_WAITS && longest >= LEAST_NS && n * longest * 2 > row->ns)
        fprintf(out,
                "  %" PRIu64 " of them took %s each: a time limit ends them, or a peer that "
                "regular.\n",
                n, gt_duration(longest));
}

static bool has_limit(const struct gt_section *s)
{
    return s->what && gt_is_poll(s->what);
}

/* Whether an event loop or a worker waits there, and no replay makes that shorter. */
static bool is_for_input(const struct gt_why *why, const struct gt_path_row *row)
{
    const struct gt_section *s = &why->sections.at[row->section];
    return s->kind == GT_NETWORK && s->rest && !why->sections.asks;
}

static void print_place(FILE *out, const struct gt_why *why, const struct gt_path_row *row,
                        const struct gt_path_row *delay, const char *by)
{
    const struct gt_section *s = &why->sections.at[row->section];
    uint64_t runs = why->path.by_kind[GT_RUNNING];
    const char *during = s->kind == GT_RUNNING  ? "computing in "
                         : s->kind == GT_UNSEEN ? "waits in no call that is recorded, in "
                                                : "";
    fprintf(out, "Limited %s %s%s:\n  %s", by, during,
            gt_section_name(&why->sections, row->section), gt_duration(row->ns));
    fprintf(out, ", %.0f %% of the critical path%s, %s", part_of_path(why, row->ns),
            s->kind == GT_SCHED ? " without a CPU" : "", gt_count(row->count, "time"));
    if (delay)
        fprintf(out, "; and %.0f %% without a CPU", part_of_path(why, delay->ns));
    if (runs * 100 >= why->path.ns * COMPUTES_PERCENT)
        fprintf(out, "; %.0f %% of it is computing, %.2f threads at a time",
                part_of_path(why, runs), why->survey.total[GT_BAND_RUNNING]);
    if (row->open * 2 > row->ns)
        fputs("; it had not ended", out);
    fputs(".\n", out);
    print_timed_out(out, why, row);
    if (s->kind == GT_NETWORK && has_limit(s))
        print_limit(out, row);
    if (row == why->unknown.row)
        print_unknown(out, why);
    else if (is_for_input(why, row))
        fputs("  A timer, input or another process ends these waits: no event tells which.\n", out);
}

/*
 * Whether the process mostly waits for the end of a child, or for a signal: as when a child ends. A
 * child that only writes its trace limits nothing where a finding says what limits the run.
 */
static bool is_in_other(const struct gt_why *why, const struct gt_whatif *first)
{
    const struct gt_path_row *row = &why->path.row[0];
    const struct gt_section *s = why->path.n ? &why->sections.at[row->section] : NULL;
    return s && row->ns * 2 > why->path.ns &&
           (gt_section_waits_for_child(s) || gt_section_waits_for_signal(s)) &&
           !(s->ending && is_told(why, first));
}

static void print_other(FILE *out, const struct gt_why *why)
{
    const struct gt_path_row *row = &why->path.row[0];
    bool child = gt_section_waits_for_child(&why->sections.at[row->section]);
    bool idle = !child && row->open * 2 > row->ns; /* a wait that nothing ended set no pace */
    fprintf(out, "%s: %s waited for %s in\n  %s\n",
            idle    ? "Idle"
            : child ? "Limited by another process"
                    : "Limited by the sender of a signal",
            gt_name_of_one(&why->graph, row->most).text, child ? "the end of a child" : "a signal",
            gt_section_name(&why->sections, row->section));
    fprintf(out, "  for %s, %.0f %% of the critical path.", gt_duration(row->ns),
            100 * (double)row->ns / (double)why->path.ns);
    if (why->sections.at[row->section].ending)
        fputs(" The child was ending: its destructors,\n"
              "  the writing of its trace and the kernel take that time.\n",
              out);
    else
        fprintf(out, " A child with threads has its own trace:\n  gotrace why %s.PID\n",
                gt_to_type(why->graph.trace.path));
}

/* A pool that is always busy, and where most of its work is, if that is where the path is. */
static void print_pool(FILE *out, const struct gt_why *why, const struct gt_whatif *it)
{
    const struct gt_path_row *row = &why->path.row[0];
    bool its = why->survey.pool_of[row->most] == why->survey.pool_of[it->pool.first];
    fprintf(out, "Limited by the pool %s: its %" PRIu32 " threads are always busy",
            gt_name_of_pool(&it->pool).text, it->pool.threads);
    if (its)
        fprintf(out, ",\n  for %.0f %% of the critical path in\n  %s", part_of_path(why, row->ns),
                gt_section_name(&why->sections, row->section));
    fputs(".\n", out);
    if (it->drained.most)
        fprintf(out,
                "  They seem to share a queue: they ended together after %" PRIu64 " to %" PRIu64
                " pieces each.\n",
                it->drained.least, it->drained.most);
}

static void print_resource(FILE *out, const struct gt_why *why, const struct gt_whatif *it)
{
    const struct gt_lock_waits *waits = &why->survey.lock[it->lock];
    switch (it->kind) {
    case GT_FREE_LOCK:
    case GT_ACROSS:
        fprintf(out, "Limited by the lock %s%s%s:\n  %s waited for it %s, %s in all.\n",
                why->graph.lock[it->lock]->name, *it->taken ? ", taken in " : "", it->taken,
                gt_count(waits->threads, "thread"), gt_count(waits->count, "time"),
                gt_duration(waits->ns));
        break;
    case GT_SLOT:
        fprintf(out, "Limited by the slots of %s%s%s: it has %" PRIu32 ".\n",
                why->graph.lock[it->lock]->name, *it->taken ? ", taken in " : "", it->taken,
                it->slots);
        break;
    case GT_MORE: print_pool(out, why, it); break;
    case GT_EVEN:
        fprintf(out, "Limited by uneven parts of the %" PRIu32 " threads %s.\n", it->pool.threads,
                gt_name_of_pool(&it->pool).text);
        break;
    default: fputs("Limited by CPUs: threads could run and had no CPU.\n", out);
    }
}

static const char *const changed[] = {
    [GT_HALF] = "If it took half as long",
    [GT_FREE_LOCK] = "If nobody ever waited for it",
    [GT_ACROSS] = "If it was not held during that wait",
    [GT_MORE] = "With one thread more",
    [GT_SLOT] = "With one slot more",
    [GT_EVEN] = "With equal parts",
    [GT_CPUS] = "With a CPU for each of them",
    [GT_NO_POLL] = "If it waited for what it asks for",
};

static const char *gain_of(const struct gt_why *why, const struct gt_whatif *it)
{
    static char text[100];
    double length = (double)(why->whatifs.to - why->whatifs.from);
    snprintf(text, sizeof text, "the run would take %s%.0f %% less: %s.",
             it->basis == GT_BOUNDED               ? "up to "
             : gt_whatifs_are_exact(&why->whatifs) ? ""
                                                   : "about ",
             100 * it->gain, gt_duration((uint64_t)((1 - it->gain) * length)));
    return text;
}

const char *gt_answer_change(const struct gt_why *why, const struct gt_finding *finding)
{
    static char text[4096];
    const struct gt_whatif *first = first_change(why);
    bool locks = first && (first->kind == GT_FREE_LOCK || first->kind == GT_ACROSS);
    *text = '\0';
    if (locks && first->lock == finding->lock)
        snprintf(text, sizeof text, "%s, %s", changed[first->kind], gain_of(why, first));
    else if (first)
        snprintf(text, sizeof text, "If %.3900s, %s", gt_whatif_name(why, first),
                 gain_of(why, first));
    return text;
}

static const struct gt_path_row *row_of(const struct gt_why *why, const struct gt_whatif *it)
{
    bool place = it->kind == GT_HALF || it->kind == GT_NO_POLL;
    return place ? gt_path_row_of(&why->path, it->section) : NULL;
}

static bool is_near(double a, double b)
{
    return a >= 0.9 * b && b >= 0.9 * a;
}

/* Whether two places have as much of the path, and save as much: which comes first is chance. */
static bool is_as_much(const struct gt_why *why, const struct gt_whatif *a,
                       const struct gt_whatif *b)
{
    const struct gt_path_row *x = row_of(why, a), *y = row_of(why, b);
    return a->kind == GT_HALF && b->kind == GT_HALF && x && y &&
           is_near((double)x->ns, (double)y->ns) && is_near(a->gain, b->gain);
}

/* The greater gain comes first, and where both gain the same, the place with more of the path. */
static bool is_before(const struct gt_why *why, const struct gt_whatif *a,
                      const struct gt_whatif *b)
{
    double more = a->gain - b->gain;
    return more > GAIN_EQUAL || (more >= -GAIN_EQUAL && row_of(why, a) < row_of(why, b));
}

enum { CAUSES_MOST = 3 };

/* The places that limit the run as much as that of the first change, which is one of them. */
static size_t find_causes(const struct gt_why *why, const struct gt_whatif *first,
                          const struct gt_whatif **cause)
{
    const struct gt_whatifs *all = &why->whatifs;
    size_t n = 0;
    for (size_t i = 0; i < all->n && n < CAUSES_MOST; i++) {
        if (&all->at[i] != first && !is_as_much(why, first, &all->at[i]))
            continue;
        size_t at = n++;
        for (; at && is_before(why, &all->at[i], cause[at - 1]); at--)
            cause[at] = cause[at - 1];
        cause[at] = &all->at[i];
    }
    return n;
}

static void print_cause(FILE *out, const struct gt_why *why, const struct gt_whatif *it,
                        const char *by)
{
    const struct gt_path_row *row = row_of(why, it);
    const struct gt_path_row *delay = row && it->kind == GT_HALF ? delay_of(why, row) : NULL;
    if (it->kind != GT_HALF && it->kind != GT_NO_POLL)
        print_resource(out, why, it);
    else
        print_place(out, why, row ? row : &why->path.row[0], delay, by);
    fprintf(out, "  %s, %s\n", delay ? "If both took half as long" : changed[it->kind],
            gain_of(why, it));
}

/*
 * Whether most of the path is waits that nobody is known to end, that had not ended, or for input,
 * and no change promises half of what shorter waits might.
 */
static bool is_beyond(const struct gt_why *why, const struct gt_whatif *first)
{
    const struct gt_path_row *row = why->path.n ? &why->path.row[0] : NULL;
    return row && (row == why->unknown.row || row->open * 2 > row->ns || is_for_input(why, row)) &&
           row->ns * 2 > why->path.ns &&
           (!first || first->gain * 4 * (double)why->path.ns < (double)row->ns);
}

bool gt_answer_print(FILE *out, const struct gt_why *why)
{
    const struct gt_whatif *first = first_change(why), *cause[CAUSES_MOST];
    bool serves = why->pieces.n; /* then the page says whether a loop was blocked */
    if (!serves && is_in_other(why, first)) {
        print_other(out, why);
        return true;
    }
    bool beyond = is_beyond(why, first);
    if (serves || (!beyond && is_told(why, first)) || !why->path.n)
        return false;
    size_t n = first && !beyond ? find_causes(why, first, cause) : 0;
    for (size_t i = 0; i < n; i++)
        print_cause(out, why, cause[i], i ? "as much by" : "by");
    if (!n)
        print_place(out, why, &why->path.row[0], NULL, "by");
    return true;
}
