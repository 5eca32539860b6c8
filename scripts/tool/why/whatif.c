/* See whatif.h. */
#include "whatif.h"

#include "off_path.h"
#include "polls.h"
#include "replay.h"
#include "sharing.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MOST = 1500000, /* a replay takes some 0.1 us a step: of more, only a part is replayed */
    SECTIONS_MOST = 10,
    LOCKS_MOST = 5,
    POOLS_MOST = 3,
};

#define LEAST_GAIN 0.01 /* smaller gains are noise */

/*
 * Halving a place can gain half of its time on the path at most. A larger gain in a replay comes
 * from threads that asked for locks in another order, which any change may cause: that is no
 * advice.
 */
#define MOST_OF_PLACE 0.75

struct search {
    struct gt_whatifs *all;
    struct gt_sections *sections;
    const struct gt_critical_path *path;
    const struct gt_survey *survey;
    struct gt_program *program;
    uint32_t last_thread;
    double *of_section, *of_thread;
    struct gt_sharing sharing;
    uint64_t saved[2]; /* gt_sharing_saves of the replay without a change, by its last argument */
    uint64_t without_input; /* see look_without_input; 0: not as long */
    bool without_output;    /* also without the calls that write */
};

/* Trying -------------------------------------------------------------------------------------- */

/* Whether CPUs would help, and the accounts do not show that its own threads lacked them. */
static bool others_have_cpus(const struct search *s, const struct gt_whatif *it)
{
    return it->kind == GT_CPUS && s->all->cpus <= 0 && !s->sections->graph->threads.cpus;
}

/*
 * The least length of the replayed part if more threads then compute side by side: the replay has
 * CPUs for all of them, and the machine may have fewer.
 */
static uint64_t least_with(const struct search *s, const struct gt_whatif *it)
{
    const struct gt_graph *graph = s->sections->graph;
    bool spreads = it->kind == GT_MORE || it->kind == GT_EVEN ||
                   (it->kind == GT_FREE_LOCK && gt_lock_is_gil(graph->lock[it->lock]));
    if (!spreads || !graph->threads.machine_cpus)
        return 0;
    return (uint64_t)(s->survey->total[GT_BAND_RUNNING] * (double)s->all->base_ns /
                      (double)graph->threads.machine_cpus);
}

/* Whether the path came to what the change is about mostly by inferred wake-ups. */
static bool is_inferred(const struct search *s, const struct gt_whatif *it)
{
    uint64_t ns = 0, guessed = 0;
    bool unlocks = it->kind == GT_FREE_LOCK;
    if (it->kind == GT_ACROSS)
        return s->path->across[it->lock].guessed * 2 > s->path->across[it->lock].ns;
    for (size_t i = 0; i < s->path->n && (unlocks || it->kind == GT_HALF); i++) {
        const struct gt_path_row *row = &s->path->row[i];
        bool its =
            unlocks ? s->sections->at[row->section].lock == it->lock : row->section == it->section;
        ns += its ? row->ns : 0;
        guessed += its ? row->guessed : 0;
    }
    return guessed * 2 > ns;
}

/*
 * Whether the change is about what threads do that take their pieces of work from a queue, or about
 * a hold of a lock that they wait for.
 */
static bool is_shared(const struct search *s, const struct gt_whatif *it)
{
    if (it->kind != GT_HALF)
        return false;
    uint32_t lock = s->sections->at[it->section].lock;
    const struct gt_lock_waits *w = lock != GT_NOBODY ? &s->survey->lock[lock] : NULL;
    return gt_sharing_time_in(&s->sharing, it->section) > 0 ||
           (w && w->count && s->sharing.takes[s->survey->pool_of[w->thread]]);
}

/*
 * Whether the change is about what a good part of the path is in, and gains less than three
 * quarters of half of that.
 */
static bool gains_too_little(const struct search *s, const struct gt_whatif *it)
{
    uint64_t ns = 0;
    bool unlocks = it->kind == GT_FREE_LOCK;
    for (size_t i = 0; i < s->path->n && (unlocks || it->kind == GT_HALF); i++) {
        const struct gt_path_row *row = &s->path->row[i];
        bool its =
            unlocks ? s->sections->at[row->section].lock == it->lock : row->section == it->section;
        ns += its ? row->ns : 0;
    }
    return ns * 4 > s->path->ns && it->gain * 8 * (double)s->path->ns < 3 * (double)ns;
}

/*
 * Whether another thread or process may end a wait there by a call that no event names: what writes
 * the input, or reads from a full pipe.
 */
static bool is_input(const struct search *s, size_t section)
{
    const struct gt_section *its = &s->sections->at[section];
    bool waits = its->kind == GT_NETWORK || its->kind == GT_SYNC;
    return (waits && gt_section_reads(its)) ||
           (s->without_output && (waits || its->kind == GT_SYSCALL) && gt_section_writes(its));
}

/* A replay in which the waits for input that nobody is known to end are over at once. */
static struct gt_outcome run_without_input(struct search *s, struct gt_change change, uint64_t *end)
{
    for (size_t i = 0; i < s->sections->n; i++)
        s->of_section[i] = is_input(s, i) ? 0 : s->of_section[i];
    change.section = s->of_section;
    struct gt_outcome outcome = gt_replay_run(s->program, &change, end);
    for (size_t i = 0; i < s->sections->n; i++)
        s->of_section[i] = is_input(s, i) ? 1 : s->of_section[i];
    return outcome;
}

/*
 * Looks whether the run takes as long without the waits for input that nobody is known to end, and
 * without the calls that write, which may wait for a reader: if not, with these calls. Then other
 * processes of the family may end them. Their events are known, but not which of them hands
 * something to which other one. In a replay such waits last as long as they did, and what would be
 * done sooner would save nothing.
 */
static void look_without_input(struct search *s)
{
    uint64_t base = s->all->base_ns;
    if (!gt_graph_is_of_family(s->sections->graph))
        return;
    for (int output = 1; output >= 0 && !s->without_input; output--) {
        s->without_output = output;
        uint64_t ns = run_without_input(s, (struct gt_change){0}, NULL).ns;
        s->without_input = ns <= base && ns * 10 > base * 9 ? ns : 0;
    }
}

/* Fills in what the run would take. most, bound: see consider_bounded. */
static void measure(struct search *s, struct gt_whatif *it, const struct gt_change *change,
                    uint64_t most, uint64_t bound)
{
    const struct gt_whatifs *all = s->all;
    bool unlocks = change->free_lock || change->across;
    bool shares = (unlocks || it->kind == GT_HALF) && !it->no_input;
    uint64_t *end = s->sharing.end, without = s->saved[!unlocks];
    struct gt_outcome outcome =
        it->no_input ? run_without_input(s, *change, end) : gt_replay_run(s->program, change, end);
    uint64_t saves = shares ? gt_sharing_saves(&s->sharing, outcome.ns, !unlocks) : 0;
    uint64_t ns = outcome.ns - (saves > without ? saves - without : 0);
    ns += it->no_input ? all->base_ns - s->without_input : 0;
    uint64_t least = least_with(s, it);
    it->ns = ns > least ? ns : least;
    it->gain = all->base_ns ? 1 - (double)it->ns / (double)all->base_ns : 0;
    it->basis = is_inferred(s, it) || it->drained.most ? GT_INFERRED
                : is_shared(s, it)                     ? GT_SHARED
                                                       : GT_REPLAYED;
    it->basis = it->no_input ? GT_BOUNDED : it->basis;
    if (it->gain * (double)all->base_ns > (double)most) {
        it->basis = GT_BOUNDED;
        it->gain = (double)bound / (double)all->base_ns;
        it->ns = (uint64_t)((1 - it->gain) * (double)all->base_ns);
    }
}

/*
 * most: the most that the change can gain, in ns. A replay that gives more is bounded by `bound`;
 * without one (0) it is no advice.
 */
static void consider_bounded(struct search *s, struct gt_whatif it, const struct gt_change *change,
                             uint64_t most, uint64_t bound)
{
    struct gt_whatifs *all = s->all;
    measure(s, &it, change, most, bound);
    if (s->without_input && gains_too_little(s, &it)) {
        struct gt_whatif other = it;
        other.no_input = true;
        measure(s, &other, change, most, bound);
        it = other.gain > 1.25 * it.gain ? other : it;
    }
    if (it.gain < LEAST_GAIN)
        return;
    it.elsewhere = others_have_cpus(s, &it);
    /* To compare with halving a section: about what twice as many threads would gain. */
    it.score = it.kind == GT_MORE ? it.gain * (it.pool.threads + 1) / 2 * 1.1 : it.gain;
    *GT_ADD(all->at, all->n) = it;
}

static void consider(struct search *s, struct gt_whatif it, const struct gt_change *change,
                     uint64_t most)
{
    consider_bounded(s, it, change, most, 0);
}

/* on_path: how long the path is in the place that takes half as long. */
static void consider_half(struct search *s, uint32_t section, uint64_t on_path)
{
    const struct gt_whatifs *all = s->all;
    double part = (double)(all->to - all->from) / ((double)s->path->ns + 1);
    double ns = (double)on_path * (part < 1 ? part : 1);
    double shared = (double)gt_sharing_time_in(&s->sharing, section); /* any may be on the path */
    ns = shared > ns ? shared : ns;
    consider_bounded(s, (struct gt_whatif){.kind = GT_HALF, .section = section},
                     &(struct gt_change){.section = s->of_section},
                     (uint64_t)(MOST_OF_PLACE * ns + LEAST_GAIN * (double)all->base_ns),
                     (uint64_t)(ns / 2));
}

/*
 * Input comes when others send it. Only an answer that the program asked for could come faster.
 * Another process's end or signal comes when that process is done.
 */
static bool can_take_half(const struct search *s, const struct gt_section *section)
{
    return section->kind != GT_SCHED && !section->spins && !section->ending &&
           !gt_section_waits_for_child(section) && !gt_section_waits_for_signal(section) &&
           (!section->rest || s->sections->asks);
}

/* Of a poll that is not understood: how often a thread looks is not how long it waits. */
static bool is_blind_poll(const struct search *s, uint32_t section)
{
    for (uint32_t i = 0; i < s->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &s->survey->place[i];
        if (p->section == section && p->count && section != s->program->poll &&
            gt_survey_is_poll(s->survey, s->sections, s->last_thread, i))
            return true;
    }
    return false;
}

/*
 * Whether threads alike wait to write on a good part of the path: they would wait longer if they
 * did sooner what they do between.
 */
static bool is_made_up(const struct search *s, const struct gt_path_row *row)
{
    enum { LEAST_PERCENT = 25 };
    uint64_t ns = 0;
    for (size_t i = 0; i < s->path->n; i++) {
        const struct gt_path_row *other = &s->path->row[i];
        bool alike = s->survey->pool_of[other->most] == s->survey->pool_of[row->most];
        ns += alike && gt_path_row_waits_to_write(s->sections, other) ? other->ns : 0;
    }
    return ns * 100 >= s->path->ns * LEAST_PERCENT && !gt_path_row_waits_to_write(s->sections, row);
}

/* Halves the places that have most of the path, each with the time without a CPU there. */
static void try_sections(struct search *s)
{
    size_t tried = 0;
    for (size_t i = 0; i < s->path->n && tried < SECTIONS_MOST; i++) {
        uint32_t section = s->path->row[i].section;
        if (section == s->sections->unknown || !can_take_half(s, &s->sections->at[section]) ||
            is_blind_poll(s, section) || is_made_up(s, &s->path->row[i]))
            continue;
        const struct gt_path_row *row = &s->path->row[i];
        uint32_t delay = gt_section_delay_of(s->sections, section);
        uint64_t ns = row->ns - row->open + (delay != section ? gt_path_ns_of(s->path, delay) : 0);
        if ((double)ns < LEAST_GAIN * (double)s->path->ns)
            continue; /* half of it is noise */
        tried++;
        s->of_section[section] = s->of_section[delay] = 0.5;
        consider_half(s, section, ns);
        s->of_section[section] = s->of_section[delay] = 1;
    }
}

/* Polls ---------------------------------------------------------------------------------------- */

/* What other threads do while one polls is not on the path, and the poll may ask for its end. */
static void try_polled(struct search *s)
{
    enum { LEAST_PERCENT = 20 }; /* of the run, in such a place */
    uint64_t length = s->survey->to - s->survey->from;
    for (uint32_t i = 0; i < s->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &s->survey->place[i];
        if (p->thread == s->program->poller || p->ns * 100 < length * LEAST_PERCENT || p->woken ||
            s->sections->at[p->section].kind == GT_NETWORK)
            continue;
        s->of_section[p->section] = 0.5;
        consider(s, (struct gt_whatif){.kind = GT_HALF, .section = p->section},
                 &(struct gt_change){.section = s->of_section}, p->ns);
        s->of_section[p->section] = 1;
    }
}

static void try_polls(struct search *s, const struct gt_place_waits *poll)
{
    consider(s, (struct gt_whatif){.kind = GT_NO_POLL, .section = poll->section},
             &(struct gt_change){.no_poll = true}, UINT64_MAX);
    try_polled(s);
}

/* Locks ---------------------------------------------------------------------------------------- */

/* Whether a thread may have to wait for the lock in that operation, or for a slot. */
static bool is_for_lock(const struct gt_program *p, const struct gt_op *op, uint32_t lock)
{
    bool asks = op->type == GT_OP_ACQUIRE || op->type == GT_OP_PASS;
    return asks ? op->arg == lock : op->type == GT_OP_AWAIT && p->edge[op->arg].lock == lock;
}

/*
 * How long threads waited for the lock, or for a slot, and then for a CPU. A change to the lock
 * saves no more: on any way back through what a thread did and which threads it needed for that,
 * nothing but such waits gets shorter. A replay may give more where it had longer waits than the
 * run.
 */
static uint64_t waits_for(const struct search *s, uint32_t lock)
{
    const struct gt_program *p = s->program;
    uint64_t ns = p->slots[lock] ? 0 : s->survey->lock[lock].ns;
    for (size_t i = 0; i < p->edges && p->slots[lock]; i++)
        ns += p->edge[i].lock == lock ? p->edge[i].at - p->edge[i].since : 0;
    for (size_t i = 0; i < p->roles; i++) {
        const struct gt_thread_role *role = &p->role[i];
        for (size_t k = 1; k < role->n; k++)
            ns += role->op[k].type == GT_OP_DELAY && is_for_lock(p, &role->op[k - 1], lock)
                      ? role->op[k].ns
                      : 0;
    }
    return ns;
}

static void consider_lock(struct search *s, struct gt_whatif it, const struct gt_change *change)
{
    uint64_t most = waits_for(s, it.lock);
    consider_bounded(s, it, change, most, most);
}

struct lock_sum {
    uint32_t lock;
    uint64_t ns;
};

GT_ORDER(by_sum, struct lock_sum, GT_DOWN(ns))

static void try_locks(struct search *s)
{
    const struct gt_graph *graph = s->sections->graph;
    struct lock_sum *sum = gt_need(calloc(graph->locks + 1, sizeof *sum));
    for (uint32_t i = 0; i < graph->locks; i++)
        sum[i] = (struct lock_sum){i, s->survey->lock[i].ns};
    qsort(sum, graph->locks, sizeof *sum, by_sum);
    double least = LEAST_GAIN * (double)(s->survey->to - s->survey->from);
    for (size_t i = 0; i < graph->locks && i < LOCKS_MOST && (double)sum[i].ns >= least; i++) {
        if (gt_graph_is_guard(graph, sum[i].lock)) /* without it threads would use no static */
            continue;
        consider_lock(s,
                      (struct gt_whatif){.kind = GT_FREE_LOCK,
                                         .lock = sum[i].lock,
                                         .taken = gt_taker_of(graph, sum[i].lock)},
                      &(struct gt_change){.free_lock = true, .lock = sum[i].lock});
    }
    free(sum);
}

static struct gt_whatif *change_of_lock(struct gt_whatifs *all, enum gt_whatif_kind kind,
                                        uint32_t lock)
{
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].kind == kind && all->at[i].lock == lock)
            return &all->at[i];
    }
    return NULL;
}

/*
 * A lock that its holders need not hold while they wait for another thread. If that gains nearly as
 * much as a lock that nobody waits for, the latter says nothing more.
 */
static void try_across(struct search *s)
{
    enum { LEAST_PERCENT = 5 }; /* of the path, in such waits */
    struct gt_whatifs *all = s->all;
    for (uint32_t i = 0; i < s->sections->graph->locks; i++) {
        const struct gt_across *its = &s->path->across[i];
        if (its->ns * 100 < s->path->ns * LEAST_PERCENT || gt_graph_is_guard(s->sections->graph, i))
            continue;
        consider_lock(s,
                      (struct gt_whatif){.kind = GT_ACROSS,
                                         .section = its->section,
                                         .lock = i,
                                         .taken = gt_taker_of(s->sections->graph, i)},
                      &(struct gt_change){.across = true, .lock = i});
        const struct gt_whatif *across = change_of_lock(all, GT_ACROSS, i);
        struct gt_whatif *unlocked = change_of_lock(all, GT_FREE_LOCK, i);
        if (across && unlocked && across->gain > 0.9 * unlocked->gain)
            *unlocked = all->at[--all->n];
    }
}

/* Pools ---------------------------------------------------------------------------------------- */

/*
 * The part of its work that each thread keeps if the pool has one thread more. Work with a lock
 * held is not divided.
 */
static double part_of_each(const struct gt_pool *pool)
{
    double n = pool->threads, free_ns = (double)pool->free_ns, held = (double)pool->held_ns;
    double part = free_ns > 0 ? ((free_ns + held) * n / (n + 1) - held) / free_ns : 1;
    return part > 0 ? part : 0;
}

GT_ORDER(by_work, struct gt_pool, GT_DOWN(free_ns))

/* Whether the pool's threads mostly wait for work, and for the same work as others of them. */
static bool is_fed(const struct gt_pool *pool)
{
    return pool->fed >= pool->threads && pool->fed * 2 > pool->rests &&
           pool->shared * 4 >= pool->rests;
}

/*
 * Whether the pool is the bottleneck: its threads hardly ever wait for work, and producers wait for
 * any of them.
 */
static bool is_full(const struct gt_pool *pool)
{
    return pool->rest_ns * 10 < pool->life_ns && pool->shared * 4 + pool->threads >= pool->rests &&
           pool->awaited > pool->threads && pool->by_peers * 4 >= pool->awaited;
}

/*
 * Whether the pool's threads wait for each other, and the work of each alone is not known: one
 * thread more would wait too.
 */
static bool is_serial(const struct gt_pool *pool)
{
    return pool->blind_ns * 10 > pool->life_ns;
}

/*
 * Whether the pool gets its work from other threads or from a queue, and a CPU is free for one
 * thread more.
 */
static bool can_grow(const struct search *s, struct gt_whatif *it)
{
    enum { THREADS_MOST = 256 };
    const struct gt_pool *pool = &it->pool;
    const struct gt_graph *graph = s->sections->graph;
    if (pool->threads < 2 || pool->threads > THREADS_MOST || is_serial(pool) || !*pool->routine ||
        s->all->cpus > 0)
        return false;
    if (is_fed(pool) || is_full(pool))
        return true;
    double runs = s->survey->total[GT_BAND_RUNNING] * (pool->threads + 1) / pool->threads;
    if ((pool->rest_ns + pool->lock_ns) * 10 > pool->life_ns ||
        (graph->threads.machine_cpus && runs > (double)graph->threads.machine_cpus))
        return false;
    it->drained = gt_drained_find(graph, s->survey, s->survey->pool_of[pool->first]);
    return it->drained.most;
}

static uint64_t full_of(const struct search *s, const struct gt_pool *pool)
{
    return gt_survey_full(s->survey, s->sections->graph, s->survey->pool_of[pool->first],
                          s->all->from, s->all->to);
}

/*
 * How much shorter the run could be with more threads in the pool. Of an interpreter's threads one
 * computes at a time, however many there are.
 */
static uint64_t beside_gil(const struct search *s, const struct gt_pool *pool)
{
    const struct gt_graph *graph = s->sections->graph;
    uint64_t from = s->all->from, to = s->all->to, longest = 0;
    for (uint32_t i = 0; i < graph->locks; i++) {
        uint64_t held = 0;
        bool its =
            gt_lock_is_gil(graph->lock[i]) && gt_lane_held(&graph->lane[pool->first], i, from, to);
        for (size_t k = 0; its && k < graph->lanes; k++)
            held += gt_lane_held(&graph->lane[k], i, from, to);
        longest = held > longest ? held : longest;
    }
    return to - from > longest ? to - from - longest : 0;
}

static void try_pools(struct search *s)
{
    const struct gt_graph *graph = s->sections->graph;
    size_t tried = 0, n = s->survey->pools;
    struct gt_pool *pool = gt_need(malloc((n + 1) * sizeof *pool));
    memcpy(pool, s->survey->pool, n * sizeof *pool);
    qsort(pool, n, sizeof *pool, by_work);
    for (size_t i = 0; i < n && tried < POOLS_MOST; i++) {
        struct gt_whatif it = {.kind = GT_MORE, .pool = pool[i]};
        uint64_t full = can_grow(s, &it) ? full_of(s, &pool[i]) : 0;
        if (full * 2 < s->all->to - s->all->from) /* it is not short of threads */
            continue;
        tried++;
        for (size_t k = 0; k < graph->lanes; k++) {
            bool in = graph->lane[k].thread->routine == pool[i].routine;
            s->of_thread[k] = in ? part_of_each(&pool[i]) : 1;
        }
        uint64_t most = full / (pool[i].threads + 1) * 5 / 4, room = beside_gil(s, &pool[i]);
        consider(s, it, &(struct gt_change){.thread = s->of_thread}, room < most ? room : most);
    }
    free(pool);
}

/* Each thread of an uneven pool gets the average part of its work. */
static void try_even(struct search *s)
{
    const struct gt_graph *graph = s->sections->graph;
    for (size_t i = 0; i < s->survey->pools; i++) {
        double average;
        const struct gt_pool *pool = &s->survey->pool[i];
        uint32_t straggler = gt_survey_straggler(s->survey, i, graph->lanes, &average);
        if (straggler == GT_NOBODY || s->path->by_thread[straggler] * 2 < s->path->ns)
            continue;
        for (uint32_t k = 0; k < graph->lanes; k++) {
            bool in = s->survey->pool_of[k] == i && s->survey->free[k];
            s->of_thread[k] = in ? average / (double)s->survey->free[k] : 1;
        }
        consider(s, (struct gt_whatif){.kind = GT_EVEN, .pool = *pool},
                 &(struct gt_change){.thread = s->of_thread}, UINT64_MAX);
    }
}

/* Slots ---------------------------------------------------------------------------------------- */

/* The function that waits for a slot, where the semaphore has no name but its address; or "". */
static const char *waiter_of(const struct search *s, uint32_t lock)
{
    const struct gt_place_waits *found = NULL;
    for (uint32_t i = 0; i < s->sections->graph->spots; i++) {
        const struct gt_place_waits *p = &s->survey->place[i];
        if (p->count && p->lock == lock && (!found || p->ns > found->ns))
            found = p;
    }
    const char *name = s->sections->graph->lock[lock]->name;
    bool named = !isdigit(*name) && strcmp(name, GT_TOKENS) != 0;
    return named || !found ? "" : s->sections->at[found->section].func;
}

static void try_slots(struct search *s)
{
    const uint32_t *slots = s->program->slots;
    size_t tried = 0;
    for (uint32_t i = 0; i < s->sections->graph->locks && tried < LOCKS_MOST; i++) {
        if (!slots[i])
            continue;
        tried++;
        bool lock = slots[i] == 1;
        struct gt_whatif it = {.kind = lock ? GT_FREE_LOCK : GT_SLOT,
                               .lock = i,
                               .taken = waiter_of(s, i),
                               .slots = slots[i]};
        consider_lock(s, it, &(struct gt_change){.free_lock = lock, .slot = !lock, .lock = i});
    }
}

/* Off the path --------------------------------------------------------------------------------- */

/* Whether a replay of the whole run takes as long with all waits off the path half as long. */
static bool is_off_path_idle(struct search *s)
{
    const struct gt_whatifs *all = s->all;
    bool whole = all->from == s->path->from && all->to == s->path->to;
    bool known =
        whole && gt_whatifs_are_exact(all) && gt_off_path_is_known(s->program, s->path, s->survey);
    for (size_t i = 0; i < all->offs && known; i++)
        known = gt_off_path_is_sleep(s->survey, s->sections, all->off[i]);
    if (!known)
        return false;
    for (size_t i = 0; i < all->offs; i++)
        s->of_section[all->off[i]] = 0.5;
    uint64_t ns = gt_replay_run(s->program, &(struct gt_change){.section = s->of_section}, NULL).ns;
    for (size_t i = 0; i < all->offs; i++)
        s->of_section[all->off[i]] = 1;
    return (double)ns > (1 - LEAST_GAIN) * (double)all->base_ns;
}

/* All of it ------------------------------------------------------------------------------------ */

void gt_whatifs_choose(struct gt_whatifs *all, const struct gt_graph *graph, uint64_t from,
                       uint64_t to)
{
    *all = (struct gt_whatifs){.from = from, .to = to};
    double length = (double)(to - from);
    double steps = (double)graph->steps * length / (double)(graph->trace.ns + 1);
    if (steps <= STEPS_MOST)
        return;
    double part = length * STEPS_MOST / steps;
    all->from += (uint64_t)((length - part) / 2);
    all->to = all->from + (uint64_t)part;
}

GT_ORDER(by_score, struct gt_whatif, GT_UP(elsewhere) ?: GT_DOWN(score))

static bool is_within(const struct gt_whatifs *all, double part)
{
    double length = (double)(all->to - all->from), base = (double)all->base_ns;
    return base >= (1 - part) * length && base <= (1 + part) * length &&
           all->forced * 20 <= all->waits + 20;
}

double gt_whatifs_unchanged(const struct gt_whatifs *all)
{
    return all->to > all->from ? (double)all->base_ns / (double)(all->to - all->from) : 1;
}

bool gt_whatifs_are_exact(const struct gt_whatifs *all)
{
    return is_within(all, 0.05);
}

bool gt_whatifs_are_sound(const struct gt_whatifs *all)
{
    return is_within(all, 0.1);
}

bool gt_whatifs_are_rough(const struct gt_whatifs *all)
{
    return is_within(all, 0.3);
}

/*
 * Whether the run lacked CPUs by the kernel's record or accounts, whether the process or others
 * used them.
 */
static bool lacks_cpu(const struct search *s)
{
    const struct gt_threads *threads = &s->sections->graph->threads;
    return (threads->cpus || threads->accounts) && s->path->by_kind[GT_SCHED] * 20 > s->path->ns;
}

static uint64_t count_passes(const struct gt_program *program)
{
    uint64_t n = 0;
    for (size_t i = 0; i < program->roles; i++) {
        for (size_t k = 0; k < program->role[i].n; k++)
            n += program->role[i].op[k].type == GT_OP_PASS;
    }
    return n;
}

void gt_whatifs_find(struct gt_whatifs *all, struct gt_sections *sections,
                     const struct gt_critical_path *path, const struct gt_survey *survey)
{
    const struct gt_graph *graph = sections->graph;
    uint32_t thread = path->watch_thread;
    all->starved = gt_starved_find(graph, path->from, path->to);
    if (thread == GT_NOBODY)
        return;
    struct search s = {
        .all = all, .sections = sections, .path = path, .survey = survey, .last_thread = thread};
    s.program = gt_program_build(sections, thread, all->from, all->to);
    const struct gt_place_waits *poll = gt_polls_find(s.program, survey);
    all->poll = poll ? poll->section : GT_NOBODY;
    s.sharing = gt_sharing_find(s.program, survey);
    struct gt_outcome base = gt_replay_run(s.program, &(struct gt_change){0}, s.sharing.end);
    s.saved[0] = gt_sharing_saves(&s.sharing, base.ns, false);
    s.saved[1] = gt_sharing_saves(&s.sharing, base.ns, true);
    all->base_ns = base.ns;
    all->forced = base.forced;
    all->waits = base.waits;
    all->cpus = s.program->cpus;
    all->passes = count_passes(s.program);
    s.of_section = gt_need(malloc((sections->n + 1) * sizeof *s.of_section));
    for (size_t i = 0; i < sections->n; i++)
        s.of_section[i] = 1;
    s.of_thread = gt_need(calloc(graph->lanes + 1, sizeof *s.of_thread));
    look_without_input(&s);
    /* A replay ends a writer's wait where its last reader left, which another moment may be. */
    all->starves = all->starved.ns * 2 > path->ns && path->seen[all->starved.spot];
    try_sections(&s);
    if (poll)
        try_polls(&s, poll);
    try_locks(&s);
    try_across(&s);
    try_pools(&s);
    try_even(&s);
    try_slots(&s);
    all->off_is_idle = is_off_path_idle(&s);
    if (all->cpus > 0 || lacks_cpu(&s))
        consider(&s, (struct gt_whatif){.kind = GT_CPUS}, &(struct gt_change){.cpus = true},
                 UINT64_MAX);
    all->n = all->starves ? 0 : all->n;
    if (all->n)
        qsort(all->at, all->n, sizeof *all->at, by_score);
    gt_program_free(s.program);
    gt_sharing_free(&s.sharing);
    free(s.of_section);
    free(s.of_thread);
}
