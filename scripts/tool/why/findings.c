/* See findings.h. */
#include "findings.h"

#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * From where on something is told. Shares are of the critical path, or of the interval: what is
 * less may be there, but is not why the run takes long.
 */
static const struct {
    double lock_path;      /* with a lock held: a tenth is worth a change */
    double lock_queue;     /* threads that wait for it at a time: less are no queue */
    uint64_t lock_waits;   /* that often: one long wait is no convoy */
    double least_gain;     /* that the replay promises without that lock, with CPUs enough */
    double io;             /* of a hold's time in calls: else it computes */
    double no_cpu;         /* without a CPU, woken or preempted */
    uint64_t delays;       /* so often: once may be anything */
    uint64_t delay_ns;     /* on average: half of it is what a wake-up takes on an idle machine */
    uint64_t herd_vain;    /* wake-ups in vain */
    double herd_vain_part; /* of all: where one of two finds something it is a queue */
    double herd_size;      /* threads woken at a time */
    double serial;         /* threads of a pool that do something at a time: one, and overlaps */
    double serial_peers;   /* of the interval that they wait for each other */
    double serial_part;    /* of the interval in which any of them does something */
    double starved;        /* of its life that a pool waits for work */
    double feeder_path;    /* of who feeds it */
    double feeder_part;    /* of the work that comes from it */
    double
        polls_path;   /* in waits that end by themselves, one after the other: or it paces itself */
    uint64_t polls;   /* so many: a few are retries */
    uint64_t look_ns; /* that who waits busily does between two yields, on average */
    double lost_part; /* of the run, up to its end, that its last thread waits */
    uint64_t lost_ns;
} from_on = {
    .lock_path = 0.10,
    .lock_queue = 0.30,
    .lock_waits = 10,
    .least_gain = 0.05,
    .io = 0.50,
    .no_cpu = 0.10,
    .delays = 10,
    .delay_ns = 100000,
    .herd_vain = 50,
    .herd_vain_part = 0.5,
    .herd_size = 2.5,
    .serial = 1.25,
    .serial_peers = 0.5,
    .serial_part = 0.5,
    .starved = 0.6,
    .feeder_path = 0.5,
    .feeder_part = 0.8,
    .polls_path = 0.5,
    .polls = 30,
    .look_ns = 50000,
    .lost_part = 0.3,
    .lost_ns = 100000000,
};

struct look {
    struct gt_findings *all;
    struct gt_sections *sections;
    uint32_t thread;
    const struct gt_path *path;
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
    all->at = gt_need_room(all->at, all->n, &all->room, sizeof *all->at);
    struct gt_finding *it = &all->at[all->n++];
    *it = (struct gt_finding){.name = name, .command = command, .at = at};
    va_start(ap, format);
    if (vasprintf(&it->text, format, ap) < 0)
        it->text = NULL;
    va_end(ap);
    gt_need(it->text);
}

static double part(const struct look *l, uint64_t ns)
{
    return l->path->ns ? (double)ns / (double)l->path->ns : 0;
}

static struct gt_name name_of(const struct look *l, uint32_t thread)
{
    return gt_name_of_thread(l->sections->graph, thread);
}

/* Locks ---------------------------------------------------------------------------------------- */

struct held {
    uint32_t lock;
    uint64_t ns, calls;            /* of the path, with the lock held */
    const struct gt_path_row *row; /* of which most is */
};

static struct held held_on_path(const struct look *l, uint32_t lock)
{
    struct held held = {.lock = lock};
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        const struct gt_section *s = &l->sections->at[row->section];
        if (s->lock != lock)
            continue;
        held.ns += row->ns;
        held.calls += s->kind == GT_RUNNING || s->kind == GT_SCHED ? 0 : row->ns;
        held.row = held.row ? held.row : row; /* the longest are first */
    }
    return held;
}

/* What the replay says that such a change brings. 1: it was not asked, or is not to be trusted. */
static double gain_of(const struct look *l, enum gt_whatif_kind kind, uint32_t lock)
{
    double gain = gt_whatifs_are_rough(l->whatifs) ? 0 : 1;
    for (size_t i = 0; i < l->whatifs->n; i++) {
        const struct gt_whatif *it = &l->whatifs->at[i];
        if (it->kind == kind && (lock == GT_NOBODY || it->lock == lock))
            gain = it->gain;
    }
    return gain;
}

static bool is_queue(const struct look *l, uint32_t lock)
{
    const struct gt_lock_waits *w = &l->survey->lock[lock];
    return w->count >= from_on.lock_waits && (double)w->ns >= from_on.lock_queue * l->length &&
           w->threads >= 2;
}

static void tell_lock(const struct look *l, const struct held *held)
{
    const struct gt_lock_waits *w = &l->survey->lock[held->lock];
    double queue = (double)w->ns / l->length;
    const char *name = l->sections->graph->lock[held->lock]->name;
    const char *what = gt_section_name(l->sections, held->row->section);
    if ((double)held->calls > from_on.io * (double)held->ns)
        add(l, "lock_held_across_io", "top --holders", w->longest_at,
            "Lock held across I/O: %s is held during %s of the critical path (%.0f %%), mostly in\n"
            "  %s.\n"
            "  Meanwhile %" PRIu64 " threads waited for it %" PRIu64 " times, %s in all.",
            name, gt_duration(held->ns), 100 * part(l, held->ns), what, w->threads, w->count,
            gt_duration(w->ns));
    else
        add(l, "convoy", "top --holders", w->longest_at,
            "Convoy: %" PRIu64 " threads queue for the lock %s, %.1f of them at a time, %" PRIu64
            " times, %s in all.\n"
            "  Who has it runs: %s; that is %.0f %% of the critical path.",
            w->threads, name, queue, w->count, gt_duration(w->ns), what, 100 * part(l, held->ns));
}

static int by_time(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static bool look_at_locks(const struct look *l)
{
    uint32_t locks = l->sections->graph->locks, n = 0;
    struct held *held = gt_need(calloc(locks + 1, sizeof *held));
    for (uint32_t i = 0; i < locks; i++) {
        struct held its = is_queue(l, i) ? held_on_path(l, i) : (struct held){0};
        if (its.row && part(l, its.ns) >= from_on.lock_path &&
            gain_of(l, GT_FREE_LOCK, i) >= from_on.least_gain)
            held[n++] = its;
    }
    qsort(held, n, sizeof *held, by_time);
    for (uint32_t i = 0; i < n; i++)
        tell_lock(l, &held[i]);
    free(held);
    return n > 0;
}

/* CPUs ------------------------------------------------------------------------------------------
 */

/* Who had the CPUs that were waited for, as a sentence. */
static const char *who_had(const struct look *l, const struct gt_delays *delays)
{
    static char text[256];
    struct gt_cpu_users users = gt_delays_users(delays, l->sections->graph);
    double all = (double)(users.ours + users.others);
    if (!all)
        return l->sections->graph->threads.cpus
                   ? "Which CPUs those were is not known."
                   : "Who had the CPUs meanwhile is told with GOTRACE_SCHED=on.";
    if ((double)users.ours < 0.05 * all)
        return "Others, not of this process, had those CPUs meanwhile.";
    snprintf(text, sizeof text,
             "Its own threads had those CPUs for %.0f %% of that, %.80s most; others for %.0f %%.",
             100 * (double)users.ours / all, name_of(l, users.thread).text,
             100 * (double)users.others / all);
    return text;
}

/* ns: of that, what is told. */
static bool matters(const struct look *l, const struct gt_delays *delays, uint64_t ns)
{
    return part(l, ns) >= from_on.no_cpu && delays->n >= from_on.delays &&
           ns >= delays->n * from_on.delay_ns;
}

/*
 * Of that, in ns, what the kernel has counted, too, as a part of all that events tell: a post wakes
 * a thread, and another that comes by may take what was posted; that is no CPU's fault.
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

/* Where the path has most of that kind. */
static const struct gt_path_row *main_delay(const struct look *l, bool woken)
{
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_section *s = &l->sections->at[l->path->row[i].section];
        if (s->kind == GT_SCHED && (woken ? s->woken : !s->what))
            return &l->path->row[i];
    }
    return NULL;
}

static void look_for_slow_wakeups(const struct look *l)
{
    const struct gt_delays *delays = &l->path->woken;
    const struct gt_path_row *row = main_delay(l, true);
    uint64_t ns = counted_of(l, delays);
    if (!matters(l, delays, ns) || !row)
        return;
    add(l, "slow_wakeup", "top --kind=sched", row->longest_at,
        "Slow wake-ups: for %.0f %% of the critical path threads were woken and had no CPU, %zu "
        "times, %s each,\n  mostly %s.\n  %s",
        100 * part(l, ns), delays->n, gt_duration(ns / delays->n),
        gt_section_name(l->sections, row->section), who_had(l, delays));
}

static void look_for_preemption(const struct look *l)
{
    const struct gt_delays *delays = &l->path->preempted;
    const struct gt_path_row *row = main_delay(l, false);
    if (!matters(l, delays, delays->ns) || !row)
        return;
    add(l, "preempted", "top --kind=sched", row->longest_at,
        "Preempted: for %.0f %% of the critical path threads had lost their CPU while they ran, "
        "%zu times, %s each,\n  mostly in %s.\n  %s",
        100 * part(l, delays->ns), delays->n, gt_duration(delays->ns / delays->n),
        gt_section_name(l->sections, row->section), who_had(l, delays));
}

/* Too many threads of its own; or else, others that had the CPUs. */
static void look_at_cpus(const struct look *l)
{
    const struct gt_survey *v = l->survey;
    if (l->whatifs->cpus > 0 && gain_of(l, GT_CPUS, GT_NOBODY) >= from_on.least_gain) {
        add(l, "oversubscription", "top --kind=cpu", GT_NO_TIME,
            "Oversubscription: its threads shared %.1f CPUs; %.1f ran and %.1f more could have, on "
            "average.",
            l->whatifs->cpus, v->total[GT_BAND_RUNNING], v->total[GT_BAND_NO_CPU]);
        return;
    }
    look_for_slow_wakeups(l);
    look_for_preemption(l);
}

/* Pools ---------------------------------------------------------------------------------------- */

/* Where threads of the pool wait most. */
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

static void look_for_serial(const struct look *l, size_t i)
{
    const struct gt_pool *pool = &l->survey->pool[i];
    double any;
    if (pool->threads < 2 || (double)pool->peer_ns < from_on.serial_peers * l->length)
        return;
    double at_once = gt_survey_parallelism(l->survey, l->sections->graph, i, l->whatifs->from,
                                           l->whatifs->to, &any);
    const struct gt_place_waits *wait = main_wait(l, i);
    if (at_once > from_on.serial || any < from_on.serial_part || !wait)
        return;
    add(l, "serialised_pool", "top --wakers", wait->longest_at,
        "Serialised: of %" PRIu32 " threads %s, %.2f do something at a time; the others wait for "
        "them in\n  %s (%s in all).",
        pool->threads,
        gt_name_of_function(*pool->routine ? pool->routine : "(routine not known)").text, at_once,
        gt_section_name(l->sections, wait->section), gt_duration(wait->ns));
}

/* Whether what the path has of a thread is sleep, mostly: so it gives work when it is due. */
static bool paces_itself(const struct look *l, uint32_t thread)
{
    uint64_t asleep = 0;
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        bool its = row->thread == thread && row->threads == 1;
        asleep += its && l->sections->at[row->section].kind == GT_SLEEP ? row->ns : 0;
    }
    return asleep * 2 > l->path->by_thread[thread];
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
    if (feeder < from_on.feeder_path || paces_itself(l, pool->feeder))
        return;
    add(l, "false_idle", "top --wakers", GT_NO_TIME,
        "False idle: %" PRIu32 " threads %s wait for work %.0f %% of their time, for %s\n"
        "  cannot bring it faster: that is %.0f %% of the critical path.",
        pool->threads, gt_name_of_function(pool->routine).text,
        100 * (double)pool->idle_ns / (double)pool->life_ns, name_of(l, pool->feeder).text,
        100 * feeder);
}

/* Waits -----------------------------------------------------------------------------------------
 */

static void look_for_herds(const struct look *l)
{
    for (size_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        if (p->vain < from_on.herd_vain || p->threads < 3 || !p->groups ||
            (double)p->vain < from_on.herd_vain_part * (double)p->count ||
            (double)p->woken < from_on.herd_size * (double)p->groups)
            continue;
        add(l, "thundering_herd", "top --wakeups", p->longest_at,
            "Thundering herd: in %s\n  %.1f threads are woken at a time, and %.0f %% of the "
            "%" PRIu64 " wake-ups were in vain.",
            gt_section_name(l->sections, p->section), (double)p->woken / (double)p->groups,
            100 * (double)p->vain / (double)p->count, p->count);
    }
}

/* Of the last thread alone, and while others do something: many work by sleeping. */
static void look_for_polls(const struct look *l)
{
    for (size_t i = 0; i < l->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &l->survey->place[i];
        if (p->rounds < from_on.polls || p->threads > 1 || p->thread != l->thread ||
            p->woken * 10 > p->count || l->survey->posts[p->thread] * 2 > p->rounds ||
            l->sections->at[p->section].kind == GT_NETWORK || l->sections->graph->lanes < 2 ||
            part(l, gt_path_ns_of(l->path, p->section)) < from_on.polls_path)
            continue;
        add(l, "polling", "top --by-thread", p->longest_at,
            "Polling: %s waits again and again, %" PRIu64 " times for %s, in\n  %s.\n"
            "  If it asks whether others are done, a wait for them would end at once.",
            name_of(l, p->thread).text, p->count, gt_duration(p->ns / p->count),
            gt_section_name(l->sections, p->section));
    }
}

static bool is_yield(const char *what)
{
    return what && strcmp(what, "sched_yield") == 0;
}

/* What the path has of that place's yields. */
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

/* A look whether there is something now takes no time; who works and is polite takes some. */
static void look_for_spinning(const struct look *l)
{
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

/* Whether nobody does anything when the trace ends, nor will by itself: no signal will come. */
static bool all_wait(const struct gt_graph *graph)
{
    for (const struct gt_thread_state *t = graph->threads.first; t; t = t->next) {
        bool waits = t->state == GT_G_WAITING && gt_kind_of(t) == GT_SYNC;
        if (!t->ended && t->state != GT_G_NONE && (!waits || (t->at_end && t->at_end->timed)))
            return false;
    }
    return true;
}

/* The last thread waits for a signal that was sent before. */
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
            "Lost wake-up: %s waits for %s until the end, for %s; %" PRIu64 " of %" PRIu64
            " signals by\n  %.*s found nobody waiting.",
            name_of(l, l->thread).text, row->name, gt_duration(waited), row->vain, row->signals,
            row->how_len, row->how);
        return;
    }
}

void gt_findings_find(struct gt_findings *all, struct gt_sections *sections, uint32_t thread,
                      const struct gt_path *path, const struct gt_survey *survey,
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
    bool locks = look_at_locks(&l);
    for (size_t i = 0; i < survey->pools; i++) {
        if (!locks)
            look_for_serial(&l, i);
        look_for_starved(&l, i);
    }
    look_at_cpus(&l);
    look_for_polls(&l);
    look_for_spinning(&l);
    look_for_herds(&l);
}
