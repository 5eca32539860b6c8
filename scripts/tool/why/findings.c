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
    double lock_gain;      /* that the replay promises where nobody waits for it */
    double io;             /* of a hold's time in calls: else it computes */
    double no_cpu;         /* without a CPU */
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
    double lost_part; /* of the run, up to its end, that its last thread waits */
    uint64_t lost_ns;
} from_on = {
    .lock_path = 0.10,
    .lock_queue = 0.30,
    .lock_waits = 10,
    .lock_gain = 0.05,
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

static const char *name_of(const struct look *l, uint32_t thread)
{
    const struct gt_thread_state *t = l->sections->graph->lane[thread].thread;
    return *t->name ? t->name : *t->routine ? t->routine : "(no name)";
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

/* What the replay says that the lock costs. 1: it was not asked, or is not to be trusted. */
static double gain_without(const struct look *l, uint32_t lock)
{
    double gain = gt_whatifs_are_sound(l->whatifs) ? 0 : 1;
    for (size_t i = 0; i < l->whatifs->n; i++) {
        const struct gt_whatif *it = &l->whatifs->at[i];
        if (it->kind == GT_FREE_LOCK && it->lock == lock)
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
            gain_without(l, i) >= from_on.lock_gain)
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

static void look_at_cpus(const struct look *l)
{
    const struct gt_survey *v = l->survey;
    uint64_t ns = l->path->by_kind[GT_SCHED], cpus = l->sections->graph->threads.cpus;
    if (l->whatifs->cpus > 0) {
        add(l, "oversubscription", "top --kind=cpu", GT_NO_TIME,
            "Oversubscription: its threads shared %.1f CPUs; %.1f ran and %.1f more could have, on "
            "average.",
            l->whatifs->cpus, v->total[GT_BAND_RUNNING], v->total[GT_BAND_NO_CPU]);
        return;
    }
    if (!cpus || part(l, ns) < from_on.no_cpu || v->woken_delays < from_on.delays ||
        v->woken_delay_ns < v->woken_delays * from_on.delay_ns ||
        v->woken_delay_ns < v->preempted_ns)
        return;
    add(l, "slow_wakeup", "top --kind=sched", GT_NO_TIME,
        "Slow wake-ups: %.0f %% of the critical path threads were woken and had no CPU: %" PRIu64
        " times in all,\n  %s on average. Others had the CPUs.",
        100 * part(l, ns), v->woken_delays, gt_duration(v->woken_delay_ns / v->woken_delays));
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
        pool->threads, *pool->routine ? pool->routine : "(routine not known)", at_once,
        gt_section_name(l->sections, wait->section), gt_duration(wait->ns));
}

static void look_for_starved(const struct look *l, size_t i)
{
    const struct gt_pool *pool = &l->survey->pool[i];
    enum { LEAST_FED = 10 };
    if (pool->threads < 2 || pool->feeder == GT_NOBODY || pool->fed < LEAST_FED ||
        (double)pool->rest_ns < from_on.starved * (double)pool->life_ns ||
        (double)pool->fed_by_that < from_on.feeder_part * (double)pool->fed)
        return;
    double feeder = part(l, l->path->by_thread[pool->feeder]);
    if (feeder < from_on.feeder_path)
        return;
    add(l, "false_idle", "top --wakers", GT_NO_TIME,
        "False idle: %" PRIu32 " threads %s wait for work %.0f %% of their time, for %s\n"
        "  cannot bring it faster: that is %.0f %% of the critical path.",
        pool->threads, pool->routine, 100 * (double)pool->rest_ns / (double)pool->life_ns,
        name_of(l, pool->feeder), 100 * feeder);
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
            name_of(l, p->thread), p->count, gt_duration(p->ns / p->count),
            gt_section_name(l->sections, p->section));
    }
}

static bool is_yield(const char *what)
{
    return what && strcmp(what, "sched_yield") == 0;
}

static void look_for_spinning(const struct look *l)
{
    for (size_t i = 0; i < l->path->n; i++) {
        const struct gt_path_row *row = &l->path->row[i];
        const struct gt_section *s = &l->sections->at[row->section];
        if (s->kind != GT_RUNNING || !is_yield(s->from_what) || !is_yield(s->to_what) ||
            row->count < from_on.polls || part(l, row->ns) < from_on.polls_path)
            continue;
        add(l, "busy_waiting", "top --kind=sched", row->longest_at,
            "Busy waiting: %s calls sched_yield again and again in %s, for %.0f %% of the critical "
            "path.",
            name_of(l, row->thread), s->func, 100 * part(l, row->ns));
    }
}

/* The last thread waits for a signal that was sent before. */
static void look_for_lost_signal(const struct look *l)
{
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_thread_state *t = graph->lane[l->thread].thread;
    uint64_t waited = graph->trace.ns - t->since;
    if (t->ended || t->state != GT_G_WAITING || gt_kind_of(t) != GT_SYNC || !t->wanted.lock ||
        waited < from_on.lost_ns || (double)waited < from_on.lost_part * l->length ||
        (t->at_end && t->at_end->timed))
        return;
    for (size_t i = 0; i < graph->trace.n_signals; i++) {
        const struct gt_signals_row *row = &graph->trace.signals[i];
        if (strcmp(row->name, t->wanted.lock->name) != 0 || !row->vain)
            continue;
        add(l, "lost_wakeup", "top --wakeups", t->since,
            "Lost wake-up: %s waits for %s until the end, for %s; %" PRIu64 " of %" PRIu64
            " signals by\n  %.*s found nobody waiting.",
            name_of(l, l->thread), row->name, gt_duration(waited), row->vain, row->signals,
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
