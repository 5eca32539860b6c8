/* See findings.h. */
#include "findings.h"

#include "accepts.h"
#include "arenas.h"
#include "hand_overs.h"
#include "herds.h"
#include "interpreter_lock.h"
#include "omp_shares.h"
#include "series.h"
#include "short_sections.h"
#include "spinning.h"

#include "encoder/base/path.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * From which value on a fault becomes a finding. Shares are of the critical path or of the
 * interval. A smaller share may be real, but does not explain why the run takes long.
 */
static const struct {
    double lock_path;      /* part of the path with the lock held: a tenth is worth a change */
    double lock_queue;     /* threads waiting for it at a time: fewer are no queue */
    uint64_t lock_waits;   /* number of waits: one long wait is no convoy */
    uint64_t short_waits;  /* of a lock with short sections: fewer cost nothing */
    double short_part;     /* part of its waiters' time */
    double least_gain;     /* gain in a replay without that lock, or with CPUs enough */
    double io;             /* part of a hold spent in calls: else the holder computes */
    double no_cpu;         /* part of the path without a CPU, woken or preempted */
    uint64_t no_cpu_ns;    /* by the account, on the path: it counts in ticks on some machines */
    uint64_t delays;       /* number of delays: a single one may be anything */
    uint64_t delay_ns;     /* average length: a wake-up on an idle machine takes half of it */
    uint64_t hand_overs;   /* on the path: fewer cost nothing */
    double hand_over_path; /* part of the path until the woken threads have a CPU */
    uint64_t piece_ns;     /* average computing from one to the next: to wake takes 5 to 50 us */
    double piece_calls;    /* most part of the path in calls, sleeps and input */
    uint64_t herd_vain;    /* number of spurious wake-ups */
    double herd_vain_part; /* their part of all: if half find work, it is a queue */
    double herd_size;      /* threads woken at a time */
    double herd_cost;      /* CPU time of spurious wake-ups, as a part of what all threads ran */
    double herd_path;      /* part of the path that threads run, or wait for a CPU */
    double serial;         /* threads of a pool working at a time: one, with overlaps */
    double serial_peers;   /* part of the interval that they wait for each other */
    double serial_part;    /* part of the interval in which any of them works */
    double serial_path;    /* part of the path on them: else they wait for work */
    double uneven;      /* of OpenMP: the busiest thread's work beyond the average, as its part */
    double starved;     /* part of its life that a pool waits for work */
    double feeder_path; /* part of the path on the thread that feeds the pool */
    double feeder_part; /* part of the pool's work that comes from that thread */
    double
        polls_path; /* part of the path in waits that no thread ends: less, and it paces itself */
    double polls_asked;     /* if what the waits are for is known */
    uint64_t polls;         /* number of waits: a few are retries */
    double stopped;         /* part of the run that the process was stopped */
    double throttled;       /* time of the quota, as part of that without a CPU on the path */
    double holder_waits;    /* part of the run that a lock is waited for */
    double holder_no_cpu;   /* part of its holds in which the holder has no CPU */
    uint64_t look_ns;       /* average time between two yields of a busy waiter */
    uint32_t series;        /* threads made one at a time: fewer may be steps of one thing */
    double series_path;     /* part of the path on these threads */
    uint64_t arena_samples; /* number of samples in the lock of an arena */
    double arena_part;      /* their part of the samples of these threads */
    double arena_waits;     /* part of the interval that threads wait unseen, together */
    double spins;           /* part of the time that all threads ran, and of the interval */
    uint64_t late_accepts;  /* connections behind others: a few come together anywhere */
    double late_part;       /* their part of the busiest worker's connections */
    double accepts_share;   /* its connections, in equal shares of all */
    double accepts_busy;    /* part of the interval that it works */
    double accepts_others;  /* the work of the others on average, as part of that */
    double starved_writer;  /* part of the interval that writers wait while readers come back */
    double once;            /* part of the path on threads that initialise what others wait for */
    double lost_part;       /* part of the run, up to its end, that its last thread waits */
    uint64_t lost_ns;
} from_on = {
    .lock_path = 0.10,
    .lock_queue = 0.30,
    .lock_waits = 10,
    .short_waits = 1000,
    .short_part = 0.05,
    .least_gain = 0.05,
    .io = 0.50,
    .no_cpu = 0.10,
    .no_cpu_ns = 10000000,
    .delays = 10,
    .delay_ns = 100000,
    .hand_overs = 500,
    .hand_over_path = 0.1,
    .piece_ns = 100000,
    .piece_calls = 0.2,
    .herd_vain = 50,
    .herd_vain_part = 0.5,
    .herd_size = 2.5,
    .herd_cost = 0.1,
    .herd_path = 0.3,
    .serial = 1.25,
    .serial_peers = 0.5,
    .serial_part = 0.5,
    .serial_path = 0.5,
    .uneven = 0.25,
    .starved = 0.6,
    .feeder_path = 0.5,
    .feeder_part = 0.8,
    .polls_path = 0.5,
    .polls_asked = 0.25,
    .polls = 30,
    .stopped = 0.1,
    .throttled = 0.3,
    .holder_waits = 0.2,
    .holder_no_cpu = 0.5,
    .look_ns = 50000,
    .series = 4,
    .series_path = 0.3,
    .arena_samples = 5,
    .arena_part = 0.05,
    .arena_waits = 0.2,
    .spins = 0.05,
    .late_accepts = 10,
    .late_part = 0.5,
    .accepts_share = 1.5,
    .accepts_busy = 0.5,
    .accepts_others = 0.25,
    .starved_writer = 0.1,
    .once = 0.1,
    .lost_part = 0.3,
    .lost_ns = 100000000,
};

struct look {
    struct gt_findings *all;
    struct gt_sections *sections;
    uint32_t thread;
    const struct gt_critical_path *path;
    const struct gt_survey *survey;
    const struct gt_whatifs *whatifs;
    double length; /* ns of the interval */
};

__attribute__((format(printf, 5, 6))) static void add(const struct look *l, const char *name,
                                                      const char *command, uint64_t at,
                                                      const char *format, ...)
{
    struct gt_findings *all = l->all;
    va_list ap;
    struct gt_finding *it = GT_ADD(all->at, all->n);
    *it = (struct gt_finding){
        .name = name, .command = command, .at = at, .lock = GT_NOBODY, .section = GT_NOBODY};
    va_start(ap, format);
    if (vasprintf(&it->text, format, ap) < 0)
        it->text = NULL;
    va_end(ap);
    gt_need(it->text);
}

void gt_findings_insert(struct gt_findings *all, size_t at, struct gt_finding it)
{
    (void)GT_ADD(all->at, all->n);
    memmove(&all->at[at + 1], &all->at[at], (all->n - 1 - at) * sizeof *all->at);
    all->at[at] = it;
}

const struct gt_finding *gt_findings_next(const struct gt_findings *all, const char *name,
                                          const struct gt_finding *last)
{
    const struct gt_finding *it = last ? last + 1 : all->at, *end = all->at + all->n;
    while (it < end && strcmp(it->name, name) != 0)
        it++;
    return it < end ? it : NULL;
}

static double part(const struct look *l, uint64_t ns)
{
    return l->path->ns ? (double)ns / (double)l->path->ns : 0;
}

/* The pieces of work of a server overlap: the times of their path add up to more than the run. */
static const char *of_path(const struct look *l, uint64_t ns)
{
    static char text[80];
    if (l->path->walks > 1)
        snprintf(text, sizeof text, "%.0f %% of the critical path of its pieces of work",
                 100 * part(l, ns));
    else
        snprintf(text, sizeof text, "%s of the critical path (%.0f %%)", gt_duration(ns),
                 100 * part(l, ns));
    return text;
}

static struct gt_name name_of(const struct look *l, uint32_t thread)
{
    return gt_name_of_thread(l->sections->graph, thread);
}

/* Locks ---------------------------------------------------------------------------------------- */

struct held {
    uint32_t lock;
    uint64_t ns, calls, across;    /* ns of the path with the lock held; see gt_across */
    const struct gt_path_row *row; /* the longest row of them, or NULL */
};

static struct held held_on_path(const struct look *l, uint32_t lock)
{
    struct held held = {.lock = lock, .across = l->path->across[lock].ns};
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        const struct gt_section *s = &l->sections->at[row->section];
        if (s->lock != lock)
            continue;
        held.ns += row->ns;
        held.calls += s->kind == GT_RUNNING || s->kind == GT_SCHED ? 0 : row->ns;
        held.row = held.row ? held.row : row; /* rows are sorted: the longest comes first */
    }
    held.ns += held.across;
    return held;
}

/*
 * The gain that the replay gives for such a change. 1: the change was not replayed, or the replay
 * is not to be trusted.
 */
static double gain_of(const struct look *l, enum gt_whatif_kind kind, uint32_t lock)
{
    double gain = gt_whatifs_are_rough(l->whatifs) ? 0 : 1;
    for (size_t i = 0; i < l->whatifs->n; i++) {
        const struct gt_whatif *it = &l->whatifs->at[i];
        bool same = it->kind == kind || (it->kind == GT_ACROSS && kind == GT_FREE_LOCK);
        if (same && (lock == GT_NOBODY || it->lock == lock))
            gain = it->gain;
    }
    return gain;
}

static bool has_change(const struct gt_whatifs *all, enum gt_whatif_kind kind)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].kind == kind)
            return true;
    }
    return false;
}

static bool is_queue(const struct look *l, uint32_t lock)
{
    const struct gt_lock_waits *w = &l->survey->lock[lock];
    return w->count >= from_on.lock_waits && (double)w->ns >= from_on.lock_queue * l->length &&
           w->threads >= 2;
}

/* ", taken in FUNCTION", with room for what follows; or "": that is not known. */
static struct gt_name taken_in(const struct look *l, uint32_t lock)
{
    const char *taker = gt_taker_of(l->sections->graph, lock);
    struct gt_name name = {""};
    if (*taker)
        snprintf(name.text, sizeof name.text, ", taken in %.1000s,",
                 gt_name_of_function(taker).text);
    return name;
}

static void tell_across(const struct look *l, const struct held *held)
{
    const struct gt_lock_waits *w = &l->survey->lock[held->lock];
    const struct gt_across *across = &l->path->across[held->lock];
    add(l, "lock_held_across_wait", "top --holders", w->longest_at,
        "Lock held across a wait: %s%s is held for %s, while its holder waits for %s in %s.\n"
        "  Meanwhile %s waited for it %s, %s in all.",
        l->sections->graph->lock[held->lock]->name, taken_in(l, held->lock).text,
        of_path(l, held->across), name_of(l, across->by).text,
        gt_section_name(l->sections, across->section), gt_count(w->threads, "thread"),
        gt_count(w->count, "time"), gt_duration(w->ns));
}

/* What to do to learn for whom the holder waits, where threads come back to wait for input. */
static const char *whom(const struct look *l, const struct gt_path_row *row)
{
    if (!l->sections->at[row->section].rest)
        return "";
    return gt_graph_knows_channels(l->sections->graph)
               ? "  Nobody is known to end these waits of its holder.\n"
               : "  Nobody is known to end these waits of its holder: gotrace -f -s all …, then "
                 "gotrace why again.\n";
}

/* What a thread does there, before the section's name. */
static const char *doing(const struct gt_section *s)
{
    if (s->kind == GT_RUNNING)
        return "computing in ";
    return s->kind != GT_SCHED ? "in " : s->woken ? "without a CPU, " : "without a CPU in ";
}

static void tell_lock(const struct look *l, const struct held *held)
{
    const struct gt_lock_waits *w = &l->survey->lock[held->lock];
    double queue = (double)w->ns / l->length;
    const char *name = l->sections->graph->lock[held->lock]->name;
    const char *what = gt_section_name(l->sections, held->row->section);
    struct gt_name taken = taken_in(l, held->lock);
    if ((double)held->calls > from_on.io * (double)held->ns)
        add(l, "lock_held_across_io", "top --holders", w->longest_at,
            "Lock held across I/O: %s%s is held during %s, mostly in\n  %s.\n%s"
            "  Meanwhile %s waited for it %s, %s in all.",
            name, taken.text, of_path(l, held->ns), what, whom(l, held->row),
            gt_count(w->threads, "thread"), gt_count(w->count, "time"), gt_duration(w->ns));
    else
        add(l, "convoy", "top --holders", w->longest_at,
            "Convoy: %s queue for the lock %s%s%s %.1f of them at a time, %s, %s in all.\n"
            "  Its holders take %.0f %% of the critical path, mostly %s%s.",
            gt_count(w->threads, "thread"), name, taken.text, *taken.text ? "" : ",", queue,
            gt_count(w->count, "time"), gt_duration(w->ns), 100 * part(l, held->ns),
            doing(&l->sections->at[held->row->section]), what);
}

/* "in look_up (81 %) and release (19 %)"; "": not known. */
static struct gt_name releasers(const struct gt_short_sections *s)
{
    struct gt_name name = {""};
    for (size_t i = 0; i < GT_RELEASERS_MOST && s->releaser[i].func; i++) {
        size_t n = strlen(name.text);
        snprintf(name.text + n, sizeof name.text - n, "%s%.400s (%.0f %%)", i ? " and " : "in ",
                 gt_name_of_function(s->releaser[i].func).text,
                 100 * (double)s->releaser[i].ns / (double)s->released_ns);
    }
    return name;
}

/* Waits were recorded, and no hold of the lock that could explain them. */
static bool has_short_sections(const struct look *l, uint32_t lock)
{
    const struct gt_lock_state *state = l->sections->graph->lock[lock];
    const struct gt_lock_waits *w = &l->survey->lock[lock];
    return w->threads >= 2 && w->held_ns * 4 < w->ns && !gt_lock_is_gil(state) &&
           !gt_lock_is_of_file(state);
}

/*
 * The replay does not know in which order threads would take such a lock, so the report gives
 * another figure.
 */
static bool tell_short_sections(const struct look *l, uint32_t lock)
{
    const struct gt_graph *graph = l->sections->graph;
    struct gt_short_sections s = gt_short_sections_of(graph, lock, l->path->from, l->path->to);
    if (s.others || s.count + s.briefs < from_on.short_waits ||
        gt_short_sections_part(&s) < from_on.short_part)
        return false;
    struct gt_name by = releasers(&s);
    double bound = (double)gt_short_sections_bound(&s) / l->length;
    bool serves = l->path->walks > 1; /* the end of a server is not what matters */
    char brief[80] = "", cost[200];
    if (s.briefs)
        snprintf(brief, sizeof brief, ", and %" PRIu64 " times too briefly for an event", s.briefs);
    if (serves)
        snprintf(cost, sizeof cost,
                 "These waits, and the lack of a CPU after them (%s), are %.0f %% of their time",
                 gt_duration(s.woken_ns), 100 * gt_short_sections_part(&s));
    else
        snprintf(cost, sizeof cost,
                 "Without these waits, and without the lack of a CPU after them (%s), the run "
                 "would take up to %.0f %% less",
                 gt_duration(s.woken_ns), 100 * (bound < 1 ? bound : 1));
    add(l, "short_sections", "top --by-lock", l->survey->lock[lock].longest_at,
        "Short sections: %s wait for the lock %s, whose holds are too short for a log: %s, %s on "
        "average%s.\n"
        "  %s; a lock for each part of what it guards may save that.%s%s%s",
        gt_count(s.threads, "thread"), graph->lock[lock]->name, gt_count(s.count, "time"),
        gt_duration(s.ns / (s.count ? s.count : 1)), brief, cost,
        *by.text ? "\n  It was given up to a waiter " : "", by.text, *by.text ? "." : "");
    l->all->at[l->all->n - 1].lock = lock;
    return true;
}

static bool is_told_of(const struct look *l, uint32_t lock)
{
    bool told = false;
    for (size_t i = 0; i < l->all->n; i++)
        told |= l->all->at[i].lock == lock;
    return told;
}

static bool look_at_short_sections(const struct look *l)
{
    bool any = false;
    for (uint32_t i = 0; i < l->sections->graph->locks; i++)
        any |= !is_told_of(l, i) && has_short_sections(l, i) && tell_short_sections(l, i);
    return any;
}

GT_ORDER(by_time, struct held, GT_DOWN(ns))

/* Only one thread executes Python at a time. */
static void tell_gil(const struct look *l, uint32_t lock)
{
    const struct gt_lock_waits *w = &l->survey->lock[lock];
    struct gt_gil_use use = gt_gil_use_of(l->sections, lock, l->path->from, l->path->to);
    bool runs = l->sections->at[use.section].kind == GT_RUNNING;
    add(l, "gil", "top --holders", w->longest_at,
        "Limited by the %s, Python's interpreter lock: %s waited for it %s,\n"
        "  %s in all. The thread that has it is %s%s (%.0f %%).",
        l->sections->graph->lock[lock]->name, gt_count(w->threads, "thread"),
        gt_count(w->count, "time"), gt_duration(w->ns), runs ? "computing in " : "in ",
        gt_section_name(l->sections, use.section),
        use.all ? 100 * (double)use.ns / (double)use.all : 0);
    struct gt_finding *it = &l->all->at[l->all->n - 1];
    it->lock = lock;
    it->section = use.section;
}

static bool look_at_gil(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    bool told = false;
    for (uint32_t i = 0; i < graph->locks; i++) {
        if (!gt_lock_is_gil(graph->lock[i]) || !is_queue(l, i) ||
            gain_of(l, GT_FREE_LOCK, i) < from_on.least_gain)
            continue;
        tell_gil(l, i);
        told = true;
    }
    return told;
}

static bool look_at_locks(const struct look *l)
{
    uint32_t locks = l->sections->graph->locks, n = 0;
    struct held *held = gt_need(calloc(locks + 1, sizeof *held));
    for (uint32_t i = 0; i < locks; i++) {
        struct held its = is_queue(l, i) ? held_on_path(l, i) : (struct held){0};
        if (part(l, its.ns) >= from_on.lock_path &&
            gain_of(l, GT_FREE_LOCK, i) >= from_on.least_gain)
            held[n++] = its;
    }
    qsort(held, n, sizeof *held, by_time);
    for (uint32_t i = 0; i < n; i++) {
        (held[i].across * 2 > held[i].ns ? tell_across : tell_lock)(l, &held[i]);
        l->all->at[l->all->n - 1].lock = held[i].lock;
        l->all->at[l->all->n - 1].part = part(l, held[i].ns);
    }
    free(held);
    return n > 0;
}

/* Of the findings about locks, from `first` on: the lock that costs most comes first. */
static void sort_by_gain(const struct look *l, size_t first)
{
    struct gt_finding *at = l->all->at;
    for (size_t i = first; i < l->all->n; i++) {
        struct gt_finding it = at[i];
        double gain = gain_of(l, GT_FREE_LOCK, it.lock);
        size_t k = i;
        for (; k > first && gain_of(l, GT_FREE_LOCK, at[k - 1].lock) < gain; k--)
            at[k] = at[k - 1];
        at[k] = it;
    }
}

/* What a guard is of: "english()::dictionary", or the guard where it has no name but its address.
 */
static const char *static_of(const struct look *l, uint32_t guard)
{
    static const char begin[] = "guard variable for ";
    const char *name = l->sections->graph->lock[guard]->name, *of = strstr(name, begin);
    return of ? of + sizeof begin - 1 : name;
}

/* How long the path is on threads that initialise a static, and where most. */
static uint64_t initialises_on_path(const struct look *l, const struct gt_path_row **most)
{
    uint64_t ns = 0;
    *most = NULL;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        ns += row->once;
        *most = row->once && (!*most || row->once > (*most)->once) ? row : *most;
    }
    return ns;
}

/* Statics that a thread initialises at their first use, while others wait for their guards. */
static void look_for_statics(const struct look *l)
{
    const struct gt_path_row *row;
    struct gt_lock_waits all = {0};
    uint64_t ns = initialises_on_path(l, &row), statics = 0;
    uint32_t most = GT_NOBODY;
    for (uint32_t i = 0; row && i < l->sections->graph->locks; i++) {
        const struct gt_lock_waits *w = &l->survey->lock[i];
        if (!w->count || !gt_graph_is_guard(l->sections->graph, i))
            continue;
        statics++;
        all.ns += w->ns;
        all.count += w->count;
        most = most == GT_NOBODY || w->ns > l->survey->lock[most].ns ? i : most;
    }
    if (most == GT_NOBODY || part(l, ns) < from_on.once ||
        (double)all.ns < from_on.once * l->length)
        return;
    add(l, "static_initialised", "top --wakers", l->survey->lock[most].longest_at,
        "Waits for a static: %s%s is initialised at its first use;\n"
        "  other threads waited %s for that, %s in all%s.\n"
        "  The initialisation is %.0f %% of the critical path, mostly in\n  %s.\n"
        "  Initialised before threads need it, it keeps none waiting.",
        static_of(l, most), taken_in(l, most).text, gt_count(all.count, "time"),
        gt_duration(all.ns), statics > 1 ? ", with other such statics" : "", 100 * part(l, ns),
        gt_section_name(l->sections, row->section));
}

static void look_for_starved_writers(const struct look *l)
{
    const struct gt_starved *it = &l->whatifs->starved;
    if (it->lock == GT_NOBODY || (double)it->ns < from_on.starved_writer * l->length ||
        !l->path->seen[it->spot]) /* the path went through it, and on with the reader */
        return;
    add(l, "writer_starvation", "top --holders", it->longest_at,
        "Writer starvation: %s is waited for in\n  %s.\n"
        "  In %s, %s in all, the reader that let the writer in had released the lock and taken it "
        "again %s meanwhile.\n"
        "  glibc prefers readers, unless PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP is set.",
        l->sections->graph->lock[it->lock]->name,
        gt_section_name(l->sections, l->survey->place[it->spot].section),
        gt_count(it->waits, "wait"), gt_duration(it->ns), gt_count(it->rounds, "time"));
}

/* CPUs ------------------------------------------------------------------------------------------
 */

/* A sentence that names what used the CPUs during these delays. */
static const char *who_had(const struct look *l, const struct gt_delays *delays)
{
    static char text[256];
    struct gt_cpu_users users = gt_delays_users(delays, l->sections->graph);
    double all = (double)(users.ours + users.others);
    if (!all)
        return l->sections->graph->threads.cpus
                   ? "Which CPUs those were is not known."
                   : "A recording with gotrace --sched says what had the CPUs meanwhile.";
    if ((double)users.ours < 0.05 * all)
        return "Others, not of this process, had those CPUs meanwhile.";
    snprintf(text, sizeof text,
             "Its own threads had those CPUs for %.0f %% of that, %.80s most; others for %.0f %%.",
             100 * (double)users.ours / all, name_of(l, users.thread).text,
             100 * (double)users.others / all);
    return text;
}

/* ns: the part of these delays that is reported. */
static bool matters(const struct look *l, const struct gt_delays *delays, uint64_t ns)
{
    return part(l, ns) >= from_on.no_cpu && delays->n >= from_on.delays &&
           ns >= delays->n * from_on.delay_ns;
}

/*
 * The part of the delays, in ns, that the kernel counted as run-queue time too, scaled by the share
 * over all threads. Events alone tell too much: a post wakes a thread, and another thread may take
 * what was posted first, which is not for want of a CPU.
 */
static uint64_t counted_of(const struct look *l, const struct gt_delays *delays)
{
    const struct gt_threads *threads = &l->sections->graph->threads;
    uint64_t queue = 0, told = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        queue += t->shares.queue;
        told += t->ns[GT_SCHED];
    }
    if (!threads->accounts || queue >= told)
        return delays->ns;
    return (uint64_t)((double)delays->ns * (double)queue / (double)told);
}

/* The longest row of the path with a delay of that kind. */
static const struct gt_path_row *main_delay(const struct look *l, bool woken)
{
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_section *s = &l->sections->at[l->path->row[i].section];
        if (s->kind == GT_SCHED && (woken ? s->woken : !s->what))
            return &l->path->row[i];
    }
    return NULL;
}

/* Threads give each other pieces of work so small that waking the next thread takes as long. */
static void look_for_small_pieces(const struct look *l)
{
    struct gt_hand_overs it = gt_hand_overs_on(l->path, l->sections);
    if (it.n < from_on.hand_overs || it.given * 4 < it.n ||
        part(l, it.ns) < from_on.hand_over_path || it.work > it.n * from_on.piece_ns ||
        part(l, it.elsewhere) > from_on.piece_calls)
        return;
    add(l, "small_pieces", "top --wakeups", it.longest_at,
        "Small pieces: threads hand over to each other %" PRIu64
        " times on the critical path, and compute %s from one hand-over to the next.\n"
        "  Woken threads take %s, %.0f %% of it, to get a CPU, mostly\n  %s.\n"
        "  Larger pieces, as several items at a time, need fewer hand-overs.",
        it.n, gt_duration(it.work / it.n), gt_duration(it.ns), 100 * part(l, it.ns),
        gt_section_name(l->sections, it.section));
}

static void look_for_slow_wakeups(const struct look *l)
{
    const struct gt_delays *delays = &l->path->woken;
    const struct gt_path_row *row = main_delay(l, true);
    uint64_t ns = counted_of(l, delays);
    if (!matters(l, delays, ns) || !row)
        return;
    add(l, "slow_wakeup", "top --kind=sched", row->longest_at,
        "Slow wake-ups: for %.0f %% of the critical path threads were woken and had no CPU, %s, "
        "%s each,\n  mostly %s.\n  %s",
        100 * part(l, ns), gt_count(delays->n, "time"), gt_duration(ns / delays->n),
        gt_section_name(l->sections, row->section), who_had(l, delays));
}

/* Without the kernel's record of switches, the accounts tell how long threads had no CPU. */
static void look_for_no_cpu(const struct look *l, const struct gt_path_row *row)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_section *s = &l->sections->at[l->path->row[i].section];
        ns += s->kind == GT_SCHED && !s->what ? l->path->row[i].ns : 0;
    }
    if (!row || part(l, ns) < from_on.no_cpu || ns < from_on.no_cpu_ns)
        return;
    add(l, "preempted", "info", row->longest_at,
        "No CPU: for %.0f %% of the critical path threads could run and had no CPU,\n"
        "  mostly in %s.\n"
        "  By the kernel's account all threads together had %.2f CPUs; other processes, or a "
        "limit, "
        "had the rest%s.",
        100 * part(l, ns), gt_section_name(l->sections, row->section),
        l->survey->total[GT_BAND_RUNNING],
        gt_findings_next(l->all, "short_sections", NULL) ? ", or it was idle" : "");
}

/*
 * Whether the holds without a CPU may explain the waits for the lock: all its waiters together wait
 * at most so long during them. A writer's own short hold explains no wait for readers, whose holds
 * are not known.
 */
static bool explains(const struct look *l, uint32_t lock)
{
    enum { PART = 4 }; /* of the waits: not all holds are recorded */
    const struct gt_lock_waits *w = &l->survey->lock[lock];
    const struct gt_starved *starved = &l->whatifs->starved;
    return w->no_cpu_ns * w->threads * PART >= w->ns &&
           (starved->lock != lock || starved->ns * 2 < w->ns);
}

/* Threads wait for a lock because its holder has no CPU: priority inversion, or too few CPUs. */
static void look_for_starved_holders(const struct look *l)
{
    for (uint32_t i = 0; i < l->sections->graph->locks; i++) {
        const struct gt_lock_waits *w = &l->survey->lock[i];
        if ((double)w->ns < from_on.holder_waits * l->length || !w->held_ns || !explains(l, i) ||
            (double)w->no_cpu_ns < from_on.holder_no_cpu * (double)w->held_ns)
            continue;
        add(l, "holder_without_cpu", "top --holders", w->longest_at,
            "Holder without a CPU: %s%s was waited for %s, %s in all.\n"
            "  For %.0f %% of the time it was held, its holder could run and had no CPU.",
            l->sections->graph->lock[i]->name, taken_in(l, i).text, gt_count(w->count, "time"),
            gt_duration(w->ns), 100 * (double)w->no_cpu_ns / (double)w->held_ns);
        l->all->at[l->all->n - 1].lock = i;
    }
}

static void look_for_preemption(const struct look *l)
{
    const struct gt_delays *delays = &l->path->preempted;
    const struct gt_path_row *row = main_delay(l, false);
    if (!l->sections->graph->threads.cpus)
        look_for_no_cpu(l, row);
    if (!matters(l, delays, delays->ns) || !row)
        return;
    add(l, "preempted", "top --kind=sched", row->longest_at,
        "Preempted: for %.0f %% of the critical path threads had lost their CPU while they ran, "
        "%s, %s each,\n  mostly in %s.\n  %s",
        100 * part(l, delays->ns), gt_count(delays->n, "time"), gt_duration(delays->ns / delays->n),
        gt_section_name(l->sections, row->section), who_had(l, delays));
}

/*
 * While the process is stopped no thread runs, but the trace shows each thread in the state it had
 * before.
 */
static void look_for_stops(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    uint64_t ns = graph->threads.halts.stopped_ns; /* in the whole trace */
    if ((double)ns < from_on.stopped * (double)graph->trace.ns)
        return;
    add(l, "stopped", "info", GT_NO_TIME,
        "Stopped: for %s in all the whole process stood still, by a signal such as SIGSTOP, by a "
        "debugger or in a frozen cgroup.\n"
        "  Each thread's time in the stop counts as whatever the thread was doing when the stop "
        "began.",
        gt_duration(ns));
}

/* The CPUs may be idle: a cgroup's quota keeps its threads from them until its period is over. */
static bool look_for_throttling(const struct look *l)
{
    const struct gt_halts *halts = &l->sections->graph->threads.halts;
    uint64_t ns = l->path->by_kind[GT_SCHED];
    if (part(l, ns) < from_on.no_cpu ||
        (double)halts->throttled_ns < from_on.throttled * (double)ns)
        return false;
    add(l, "throttled", "info", GT_NO_TIME,
        "Throttled: for %.0f %% of the critical path threads could run and had no CPU. The CPU "
        "quota of the cgroup ran out %s,\n  and kept its threads from the CPUs for %s, summed over "
        "CPUs. A larger quota (cpu.max), or fewer threads at a time, would help.",
        100 * part(l, ns), gt_count(halts->throttled, "time"), gt_duration(halts->throttled_ns));
    return true;
}

/*
 * Whether the program had most CPUs of the machine, and never more threads to run than the machine
 * has CPUs. Then other processes had the rest. A program with fewer CPUs may not be allowed more.
 */
static bool fits_on_cpus(const struct look *l)
{
    enum { SOME = GT_COLUMNS / 16 };
    const struct gt_survey *v = l->survey;
    double cpus = (double)l->sections->graph->threads.machine_cpus;
    int crowded = 0;
    for (int i = 0; i < GT_COLUMNS; i++)
        crowded += v->band[GT_BAND_RUNNING][i] + v->band[GT_BAND_NO_CPU][i] > cpus + 0.5;
    return l->whatifs->cpus > cpus - 1 && crowded < SOME;
}

/* Looks for too many threads of the process; else for other processes that used the CPUs. */
static void look_at_cpus(const struct look *l)
{
    const struct gt_survey *v = l->survey;
    if (gt_findings_next(l->all, "stopped", NULL) || look_for_throttling(l))
        return;
    if (l->whatifs->cpus > 0 && gain_of(l, GT_CPUS, GT_NOBODY) >= from_on.least_gain &&
        !fits_on_cpus(l)) {
        add(l, "oversubscription", "top --kind=cpu", GT_NO_TIME,
            "Oversubscription: its threads shared %.1f CPUs; %.1f ran and %.1f more could have, on "
            "average.",
            l->whatifs->cpus, v->total[GT_BAND_RUNNING], v->total[GT_BAND_NO_CPU]);
        return;
    }
    look_for_starved_holders(l);
    look_for_slow_wakeups(l);
    look_for_preemption(l);
}

/* Pools ---------------------------------------------------------------------------------------- */

/* Where the threads of the pool wait longest. */
static const struct gt_place_waits *main_wait(const struct look *l, size_t pool)
{
    const struct gt_place_waits *found = NULL;
    for (size_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        if (p->count && l->survey->pool_of[p->thread] == pool && (!found || p->ns > found->ns))
            found = p;
    }
    return found;
}

/* How long the path is on threads of the pool, in ns. */
static uint64_t path_on(const struct look *l, size_t pool)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < l->sections->graph->lanes; i++)
        ns += l->survey->pool_of[i] == pool ? l->path->by_thread[i] : 0;
    return ns;
}

static void look_for_serial(const struct look *l, size_t i)
{
    const struct gt_pool *pool = &l->survey->pool[i];
    double any;
    if (pool->threads < 2 || !*pool->routine || part(l, path_on(l, i)) < from_on.serial_path ||
        (double)pool->peer_ns < from_on.serial_peers * l->length)
        return;
    double at_once = gt_survey_parallelism(l->survey, l->sections->graph, i, l->whatifs->from,
                                           l->whatifs->to, &any);
    const struct gt_place_waits *wait = main_wait(l, i);
    if (at_once > from_on.serial || any < from_on.serial_part || !wait)
        return;
    if (wait->lock != GT_NOBODY && gt_lock_is_gil(l->sections->graph->lock[wait->lock])) {
        tell_gil(l, wait->lock);
        return;
    }
    add(l, "serialised_pool", "top --wakers", wait->longest_at,
        "Serialised: of %" PRIu32 " threads %s, %.2f do something at a time; the others wait for "
        "them in\n  %s (%s in all).",
        pool->threads, gt_name_of_pool(pool).text, at_once,
        gt_section_name(l->sections, wait->section), gt_duration(wait->ns));
    l->all->at[l->all->n - 1].section = wait->section;
}

static bool has_gil(const struct gt_graph *graph)
{
    bool found = false;
    for (size_t i = 0; i < graph->locks; i++)
        found |= gt_lock_is_gil(graph->lock[i]);
    return found;
}

/*
 * Threads that are made one at a time. Whether one needs the result of another is not known. Those
 * that compute in Python do so one at a time anyway.
 */
static void look_for_series(const struct look *l, uint32_t i)
{
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_pool *pool = &l->survey->pool[i];
    uint64_t ns = 0;
    if (pool->threads < from_on.series || !*pool->routine)
        return;
    for (uint32_t k = 0; k < graph->lanes; k++)
        ns += l->survey->pool_of[k] == i ? l->path->by_thread[k] : 0;
    if (part(l, ns) < from_on.series_path)
        return;
    struct gt_series s = gt_series_find(graph, l->survey, i);
    bool computes = s.computes * 2 > ns;
    if (s.threads < from_on.series || s.longest * 2 > ns || (computes && has_gil(graph)))
        return;
    uint32_t section = gt_sections_of(l->sections, s.maker, &s.wait);
    add(l, "one_at_a_time", "top --wakers", s.wait.from,
        "One at a time: %s makes %" PRIu32 " threads %s, and waits for each in %s before it makes "
        "the next one: %s, %.0f %% of the critical path.\n"
        "  If none needs the result of the one before it, all of them side by side%s take as "
        "little as the longest needs: %s.",
        name_of(l, s.maker).text, s.threads, gt_name_of_pool(pool).text,
        gt_section_name(l->sections, section), gt_duration(ns), 100 * part(l, ns),
        computes ? ", with a CPU for each, may" : " may", gt_duration(s.longest));
}

/* Threads have a part of the work each, and one part is larger: the others end, and it goes on. */
static void look_for_imbalance(const struct look *l, size_t i)
{
    const struct gt_pool *pool = &l->survey->pool[i];
    double average;
    uint32_t thread = gt_survey_straggler(l->survey, i, l->sections->graph->lanes, &average);
    if (thread == GT_NOBODY || part(l, l->path->by_thread[thread]) < from_on.feeder_path ||
        gain_of(l, GT_EVEN, GT_NOBODY) < from_on.least_gain || !has_change(l->whatifs, GT_EVEN))
        return;
    add(l, "imbalance", "top --by-thread", GT_NO_TIME,
        "Imbalance: of %" PRIu32 " threads %s, %s works %s, all of them %s on average.\n"
        "  Its work is %.0f %% of the critical path, while the others have ended or wait.",
        pool->threads, gt_name_of_pool(pool).text, gt_name_of_one(l->sections->graph, thread).text,
        gt_duration(l->survey->free[thread]), gt_duration((uint64_t)average),
        100 * part(l, l->path->by_thread[thread]));
}

/* The threads of an OpenMP region wait at its end for the one that has most to do. */
static void look_for_uneven_regions(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    struct gt_omp_shares it = gt_omp_shares_find(graph, l->path->from, l->path->to);
    double over = (double)it.over_ns / ((double)(it.over_ns + it.mean_ns) + 1);
    double gain = over * part(l, it.ns);
    if (!it.call || it.threads < 2 || l->whatifs->cpus > 0 || gain < from_on.least_gain ||
        (double)it.over_ns < from_on.uneven * (double)it.mean_ns)
        return;
    const struct gt_where *where = gt_omp_place(it.call);
    add(l, "imbalance", "top --by-thread", it.at,
        "Imbalance: the %" PRIu32 " threads of the parallel region in %s (%s:%" PRIu64
        ") wait at its end for one of them.\n"
        "  %s works longest, %s in %s; all of them %s on average.\n"
        "  With equal parts, as by schedule(dynamic), the run would take up to %.0f %% less.",
        it.threads, gt_name_of_function(where->func).text, gt_path_name(where->file), where->line,
        gt_name_of_one(graph, it.busiest).text, gt_duration(it.busiest_ns),
        gt_count(it.regions, "region"), gt_duration(it.mean_ns), 100 * gain);
}

/*
 * Whether the thread's part of the path is mostly sleep, or rest for input that no thread is known
 * to send: then it hands out work when that is due, or when it comes.
 */
static bool hands_on(const struct look *l, uint32_t thread)
{
    uint64_t rests = 0;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        bool its = row->thread == thread && row->threads == 1;
        const struct gt_section *s = &l->sections->at[row->section];
        rests += its && (s->kind == GT_SLEEP || (s->kind == GT_NETWORK && s->rest)) ? row->ns : 0;
    }
    return rests * 2 > l->path->by_thread[thread];
}

/*
 * Whether CPUs limit the run, and spurious wake-ups take a good part of its threads' CPU time. Then
 * a thread that lacks a CPU, or work, may lack it because of these wake-ups.
 */
static bool is_heavy(const struct look *l, uint64_t vain)
{
    enum { WAKE_NS = 5000 }; /* a wake-up, a look and two switches take a CPU at least so long */
    double ran = l->survey->total[GT_BAND_RUNNING] * l->length;
    uint64_t cpu = l->path->by_kind[GT_RUNNING] + l->path->by_kind[GT_SCHED];
    return part(l, cpu) >= from_on.herd_path && (double)vain * WAKE_NS >= from_on.herd_cost * ran;
}

/* Whether the pool's threads have spurious wake-ups: see is_heavy. */
static bool is_herd(const struct look *l, size_t pool)
{
    bool found = false;
    for (uint32_t i = 0; i < l->sections->graph->spots && !found; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        found = p->count && l->survey->pool_of[p->thread] == pool &&
                (double)p->kept >= from_on.herd_vain_part * (double)p->count &&
                is_heavy(l, p->kept);
    }
    return found;
}

static void look_for_starved(const struct look *l, size_t i)
{
    const struct gt_pool *pool = &l->survey->pool[i];
    enum { LEAST_FED = 10 };
    if (pool->threads < 2 || pool->feeder == GT_NOBODY || pool->fed < LEAST_FED ||
        (double)pool->idle_ns < from_on.starved * (double)pool->life_ns ||
        (double)pool->fed_by_that < from_on.feeder_part * (double)pool->fed)
        return;
    double feeder = part(l, l->path->by_thread[pool->feeder]);
    if (feeder < from_on.feeder_path || hands_on(l, pool->feeder) || is_herd(l, i))
        return;
    add(l, "false_idle", "top --wakers", GT_NO_TIME,
        "False idle: %" PRIu32 " threads %s wait for work %.0f %% of their time, for %s\n"
        "  cannot bring it faster: that is %.0f %% of the critical path.",
        pool->threads, gt_name_of_pool(pool).text,
        100 * (double)pool->idle_ns / (double)pool->life_ns, name_of(l, pool->feeder).text,
        100 * feeder);
}

/* Waits -----------------------------------------------------------------------------------------
 */

/* How long the woken threads queue for the lock, as a clause; "": no good part of the time. */
static struct gt_name queue_of_herd(const struct look *l, const struct gt_herd *herd)
{
    struct gt_name clause = {""};
    if (herd->lock != GT_NOBODY && (double)herd->queued_ns >= from_on.lock_queue * l->length)
        snprintf(clause.text, sizeof clause.text, ", and queue for the lock %s, %s in all",
                 l->sections->graph->lock[herd->lock]->name, gt_duration(herd->queued_ns));
    return clause;
}

/* heavy: see is_heavy. */
static void look_for_herds(const struct look *l, bool heavy)
{
    for (uint32_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        if (p->threads < 3 || !p->groups || p->kept < from_on.herd_vain ||
            (double)p->woken < from_on.herd_size * (double)p->groups)
            continue;
        struct gt_herd herd = gt_herd_of(l->sections->graph, i);
        if (herd.vain < from_on.herd_vain ||
            (double)herd.vain < from_on.herd_vain_part * (double)herd.wakes ||
            is_heavy(l, herd.vain) != heavy)
            continue;
        add(l, "thundering_herd", "top --wakeups", p->longest_at,
            "Thundering herd: in %s,\n  %.1f threads are woken at a time%s.\n  After %.0f %% of "
            "%" PRIu64 " wake-ups the thread kept the mutex, woke no other thread, and waited "
            "again.",
            gt_section_name(l->sections, p->section), (double)p->woken / (double)p->groups,
            queue_of_herd(l, &herd).text, 100 * (double)herd.vain / (double)herd.wakes, herd.wakes);
    }
}

/* What polling threads seem to ask for, as the next sentence; or "". */
static struct gt_name asked_of(const struct look *l, const struct gt_asked *a)
{
    static const char *const how[] = {
        [GT_ASKED_HELD] = "At %.0f %% of the looks that found nothing, another thread held",
        [GT_ASKED_THERE] = "At %.0f %% of the looks that found nothing, another thread was in",
        [GT_ASKED_ENDED] = "Before %.0f %% of the looks that found something, another thread ended",
    };
    struct gt_name text = {""};
    char words[120];
    if (a->how == GT_ASKED_AGAIN)
        return (struct gt_name){"\n  The waits grow, as those of a thread that tries again."};
    if (a->how == GT_ASKED_UNKNOWN)
        return text;
    if (a->how == GT_ASKED_CHILD) {
        snprintf(text.text, sizeof text.text,
                 "\n  Before %" PRIu64 " of %" PRIu64
                 " rounds of these waits the thread made a child process, or waited for one.",
                 a->hits, a->of);
        return text;
    }
    if (a->how == GT_ASKED_TRIED) {
        struct gt_name holder = {"another thread"};
        if (a->by != GT_NOBODY)
            holder = name_of(l, a->by);
        snprintf(text.text, sizeof text.text,
                 "\n  Before %.0f %% of these waits a try for %.400s%.300s failed:\n"
                 "  %.200s held it.",
                 100 * (double)a->hits / (double)a->of, l->sections->graph->lock[a->what]->name,
                 taken_in(l, a->what).text, holder.text);
        return text;
    }
    snprintf(words, sizeof words, how[a->how], 100 * (double)a->hits / (double)a->of);
    bool held = a->how == GT_ASKED_HELD;
    snprintf(text.text, sizeof text.text, "\n  %s\n  %.800s.", words,
             held ? l->sections->graph->lock[a->what]->name
                  : gt_section_name(l->sections, a->what));
    return text;
}

/* The waits of all stacks that lead to the place. */
static struct gt_place_waits sum_at(const struct look *l, uint32_t section)
{
    struct gt_place_waits sum = {0};
    for (uint32_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        if (!p->count || p->section != section)
            continue;
        sum.count += p->count;
        sum.ns += p->ns;
        sum.threads = p->threads > sum.threads ? p->threads : sum.threads;
    }
    return sum;
}

static void tell_poll(const struct look *l, const struct gt_place_waits *p)
{
    struct gt_place_waits sum = sum_at(l, p->section);
    struct gt_name who = name_of(l, p->thread), asked = asked_of(l, &p->asked);
    char others[80] = "";
    bool one = sum.threads == 1;
    const char *helps =
        p->asked.how == GT_ASKED_TRIED
            ? "A call that waits for the lock, in place of a try, would get it sooner."
        : p->asked.how == GT_ASKED_CHILD
            ? "If it asks whether a child has ended, waitpid without WNOHANG would return at once."
        : one ? "If it asks whether another thread is done, a wait for that would end at once."
              : "If they ask whether another thread is done, a wait for that would end at once.";
    if (!one)
        snprintf(who.text, sizeof who.text, "%" PRIu64 " threads", sum.threads);
    else if (l->survey->posts[p->thread])
        snprintf(others, sizeof others, "\n  Other threads waited %s until it had looked.",
                 gt_count(l->survey->posts[p->thread], "time"));
    add(l, "polling", p->asked.how == GT_ASKED_TRIED ? "top --holders" : "top --by-thread",
        p->longest_at,
        "Polling: %s wait%s again and again, %" PRIu64 " times for %s, in\n  %s.\n"
        "  %s%s%s",
        who.text, one ? "s" : "", sum.count, gt_duration(sum.ns / sum.count),
        gt_section_name(l->sections, p->section), helps, others, asked.text);
    l->all->at[l->all->n - 1].section = p->section;
}

/* Whether a finding reports polling at that place, to which several stacks may lead. */
static bool is_poll_told(const struct look *l, uint32_t section)
{
    const struct gt_finding *it = NULL;
    while ((it = gt_findings_next(l->all, "polling", it)) && it->section != section)
        ;
    return it;
}

static void look_for_polls(const struct look *l)
{
    for (uint32_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        double least = p->asked.how != GT_ASKED_UNKNOWN ? from_on.polls_asked : from_on.polls_path;
        if (gt_survey_is_poll(l->survey, l->sections, l->thread, i) &&
            part(l, gt_path_ns_of(l->path, p->section)) >= least && !is_poll_told(l, p->section))
            tell_poll(l, p);
    }
}

static bool is_yield(const char *what)
{
    return what && strcmp(what, "sched_yield") == 0;
}

/* How long the path is in the yields of that place's function, in ns. */
static uint64_t yields_in(const struct look *l, const struct gt_section *place)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_section *s = &l->sections->at[l->path->row[i].section];
        if (s->kind == GT_SCHED && is_yield(s->what) && s->func == place->func)
            ns += l->path->row[i].ns;
    }
    return ns;
}

/* What busy waiting costs is CPU time, on the critical path or off it. */
static bool tell_spinning(const struct look *l)
{
    struct gt_spinning it = gt_spinning_find(l->sections, l->path->from, l->path->to);
    if (it.section == GT_NOBODY || (double)it.all_ns < from_on.spins * (double)it.ran_ns ||
        (double)it.all_ns < from_on.spins * l->length)
        return false;
    const struct gt_section *s = &l->sections->at[it.section];
    struct gt_name who = name_of(l, it.thread);
    if (it.threads > 1)
        snprintf(who.text, sizeof who.text, "%" PRIu32 " threads", it.threads);
    add(l, "busy_waiting", "top --by-thread", it.longest_at,
        "Busy waiting: %s %s again and again in\n  %s: %s on a CPU, %.0f %% of what all threads "
        "ran.\n  A mutex or a condition variable would let them wait without a CPU.",
        who.text,
        s->sampled       ? it.threads > 1 ? "read memory" : "reads memory"
        : it.threads > 1 ? "call sched_yield"
                         : "calls sched_yield",
        gt_section_name(l->sections, it.section), gt_duration(it.ns),
        100 * (double)it.ns / (double)it.ran_ns);
    l->all->at[l->all->n - 1].section = it.section;
    return true;
}

/* A busy waiter's look takes no time. A thread that works and yields now and then takes longer. */
static void look_for_spinning(const struct look *l)
{
    if (tell_spinning(l))
        return;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        const struct gt_section *s = &l->sections->at[row->section];
        if (s->kind != GT_RUNNING || !is_yield(s->from_what) || !is_yield(s->to_what) ||
            row->count < from_on.polls || row->ns > row->count * from_on.look_ns)
            continue;
        double its = part(l, row->ns + yields_in(l, s));
        if (its < from_on.polls_path)
            continue;
        add(l, "busy_waiting", "top --kind=sched", row->longest_at,
            "Busy waiting: %s calls sched_yield again and again, %" PRIu64 " times in %s,\n"
            "  for %.0f %% of the critical path.",
            name_of(l, row->thread).text, row->count, gt_name_of_function(s->func).text, 100 * its);
    }
}

/* Only samples tell that the waits are for that. */
static void look_for_arenas(const struct look *l)
{
    struct gt_arenas it = gt_arenas_find(l->sections, l->path->from, l->path->to);
    if (it.locked < from_on.arena_samples || it.threads < 2 ||
        (double)it.locked < from_on.arena_part * (double)it.samples ||
        (double)it.unseen_ns < from_on.arena_waits * l->length)
        return;
    add(l, "malloc_lock", "top --cpu", it.at,
        "malloc: %" PRIu64 " threads wait for the lock of an arena. They were off the CPU in no "
        "recorded call for %s,\n  and %" PRIu64 " of %" PRIu64
        " CPU samples are in that lock, mostly called by %s.\n"
        "  What helps: more arenas (MALLOC_ARENA_MAX), another allocator, or fewer calls.",
        it.threads, gt_duration(it.unseen_ns), it.locked, it.samples,
        gt_name_of_function(it.caller).text);
}

/*
 * Whether every thread waits without a timeout when the trace ends: no signal will come any more.
 */
static bool all_wait(const struct gt_graph *graph)
{
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next) {
        bool waits = t->state == GT_G_WAITING && gt_kind_of(t) == GT_SYNC;
        if (!t->ended && t->state != GT_G_NONE && (!waits || (t->at_end && t->at_end->timed)))
            return false;
    }
    return true;
}

/* The last thread waits for a signal that was sent before it began to wait. */
static void look_for_lost_signal(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_thread_state *t = graph->lane[l->thread].thread;
    uint64_t waited = graph->trace.ns - t->since;
    if (t->ended || t->state != GT_G_WAITING || gt_kind_of(t) != GT_SYNC || !t->wanted.lock ||
        waited < from_on.lost_ns || (double)waited < from_on.lost_part * l->length ||
        !all_wait(graph))
        return;
    for (size_t i = 0; i < graph->trace.n_signals; i++) {
        const struct gt_signals_row *row = &graph->trace.signals[i];
        if (strcmp(row->name, t->wanted.lock->name) != 0 || !row->vain)
            continue;
        add(l, "lost_wakeup", "top --wakeups", t->since,
            "Lost wake-up: %s waits for %s until the end, for %s.\n  %" PRIu64 " of %" PRIu64
            " signals by %.*s found no thread waiting.",
            name_of(l, l->thread).text, row->name, gt_duration(waited), row->vain, row->signals,
            row->how_len, row->how);
        return;
    }
}

/* With all calls recorded, accepts that found nothing are there, too. */
static void look_for_uneven_accepts(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    if (graph->channels)
        return;
    struct gt_accepts it = gt_accepts_find(l->survey, l->sections);
    if (it.worker == GT_NOBODY || it.workers < 2 || it.late < from_on.late_accepts ||
        (double)it.late < from_on.late_part * (double)it.its ||
        (double)it.its * it.workers < from_on.accepts_share * (double)it.all ||
        it.busy < from_on.accepts_busy || it.others > from_on.accepts_others * it.busy)
        return;
    add(l, "uneven_accepts", "top --by-thread", it.late_at,
        "Uneven accepts: %s, one of %" PRIu32 " workers, accepted %" PRIu64 " of %" PRIu64
        " recorded\n  connections and was busy for %.0f %% of the time, the others for %.0f %% on "
        "average.\n  %" PRIu64 " of them waited while this worker served another connection.\n  No "
        "event tells whether the workers accept for the same address.",
        name_of(l, it.worker).text, it.workers, it.its, it.all, 100 * it.busy, 100 * it.others,
        it.late);
}

void gt_findings_find(struct gt_findings *all, struct gt_sections *sections, uint32_t thread,
                      const struct gt_critical_path *path, const struct gt_survey *survey,
                      const struct gt_whatifs *whatifs)
{
    struct look l = {.all = all,
                     .sections = sections,
                     .thread = thread,
                     .path = path,
                     .survey = survey,
                     .whatifs = whatifs,
                     .length = (double)(path->to - path->from)};
    *all = (struct gt_findings){0};
    look_for_lost_signal(&l);
    look_for_stops(&l);
    look_for_herds(&l, true);
    look_for_small_pieces(&l);
    size_t first = all->n;
    bool gil = look_at_gil(&l), locks = look_at_locks(&l) || gil;
    locks |= look_at_short_sections(&l);
    sort_by_gain(&l, first);
    look_for_starved_writers(&l);
    look_for_statics(&l);
    for (size_t i = 0; i < survey->pools; i++) {
        if (!locks)
            look_for_serial(&l, i);
        look_for_starved(&l, i);
        look_for_imbalance(&l, i);
        look_for_series(&l, (uint32_t)i);
    }
    look_for_uneven_regions(&l);
    look_for_uneven_accepts(&l);
    look_at_cpus(&l);
    look_for_polls(&l);
    look_for_spinning(&l);
    look_for_arenas(&l);
    look_for_herds(&l, false);
}
