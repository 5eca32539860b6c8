/* See whatif.h. */
#include "whatif.h"

#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MOST = 1500000, /* a replay takes some 0.1 us a step: of more, a part is replayed */
    SECTIONS_MOST = 10,
    LOCKS_MOST = 5,
    POOLS_MOST = 3,
};

#define LEAST_GAIN 0.01 /* what is less is noise */

/*
 * Half of what the path has of a place is all that it can bring. What brings more in a replay has
 * made threads ask for locks in another order, as anything may: that is no advice.
 */
#define MOST_OF_PLACE 0.75

struct search {
    struct gt_whatifs *all;
    struct gt_sections *sections;
    const struct gt_path *path;
    const struct gt_survey *survey;
    struct gt_program *program;
    double *of_section, *of_thread;
};

/* Trying -------------------------------------------------------------------------------------- */

/* most: what it can bring, ns. */
static void consider(struct search *s, struct gt_whatif it, const struct gt_change *change,
                     uint64_t most)
{
    struct gt_whatifs *all = s->all;
    struct gt_outcome outcome = gt_replay_run(s->program, change);
    it.ns = outcome.ns;
    it.gain = all->base_ns ? 1 - (double)outcome.ns / (double)all->base_ns : 0;
    if (it.gain < LEAST_GAIN || it.gain * (double)all->base_ns > (double)most)
        return;
    /* Halves for all: what a pool of twice as many threads would bring, about. */
    it.score = it.kind == GT_MORE ? it.gain * (it.pool.threads + 1) / 2 * 1.1 : it.gain;
    all->at = gt_need_room(all->at, all->n, &all->room, sizeof *all->at);
    all->at[all->n++] = it;
}

static uint64_t most_of(const struct search *s, uint64_t on_path)
{
    const struct gt_whatifs *all = s->all;
    double part = (double)(all->to - all->from) / ((double)s->path->ns + 1);
    return (uint64_t)(MOST_OF_PLACE * (double)on_path * (part < 1 ? part : 1) +
                      LEAST_GAIN * (double)all->base_ns);
}

static bool can_take_half(const struct gt_section *section)
{
    return section->kind != GT_SCHED;
}

static void try_sections(struct search *s)
{
    size_t tried = 0;
    for (size_t i = 0; i < s->path->n && tried < SECTIONS_MOST; i++) {
        uint32_t section = s->path->row[i].section;
        if (section == s->sections->unknown || !can_take_half(&s->sections->at[section]))
            continue;
        tried++;
        s->of_section[section] = 0.5;
        consider(s, (struct gt_whatif){.kind = GT_HALF, .section = section},
                 &(struct gt_change){.section = s->of_section}, most_of(s, s->path->row[i].ns));
        s->of_section[section] = 1;
    }
}

/* Locks ---------------------------------------------------------------------------------------- */

struct lock_sum {
    uint32_t lock;
    uint64_t ns;
};

static int by_sum(const void *a, const void *b)
{
    const struct lock_sum *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

/* Which function held it longest. */
static const char *taker_of(const struct gt_graph *graph, uint32_t lock)
{
    const char *found = "";
    uint64_t longest = 0;
    for (size_t i = 0; i < graph->lanes; i++) {
        for (size_t k = 0; k < graph->lane[i].holds; k++) {
            const struct gt_hold *h = &graph->lane[i].hold[k];
            if (h->lock != lock || h->to - h->from <= longest || !*graph->text[h->place])
                continue;
            longest = h->to - h->from;
            found = graph->text[h->place];
        }
    }
    return found;
}

static void try_locks(struct search *s)
{
    const struct gt_graph *graph = s->sections->graph;
    struct lock_sum *sum = gt_need(calloc(graph->locks + 1, sizeof *sum));
    for (uint32_t i = 0; i < graph->locks; i++)
        sum[i] = (struct lock_sum){i, s->survey->lock[i].ns};
    qsort(sum, graph->locks, sizeof *sum, by_sum);
    for (size_t i = 0; i < graph->locks && i < LOCKS_MOST && sum[i].ns; i++) {
        consider(s,
                 (struct gt_whatif){.kind = GT_FREE_LOCK,
                                    .lock = sum[i].lock,
                                    .taken = taker_of(graph, sum[i].lock)},
                 &(struct gt_change){.free_lock = true, .lock = sum[i].lock}, UINT64_MAX);
    }
    free(sum);
}

/* Pools ---------------------------------------------------------------------------------------- */

/*
 * A thread more: each has a smaller part of the work; but what is done with a lock held is not
 * done by two at a time.
 */
static double part_of_each(const struct gt_pool *pool)
{
    double n = pool->threads, free_ns = (double)pool->free_ns, held = (double)pool->held_ns;
    double part = free_ns > 0 ? ((free_ns + held) * n / (n + 1) - held) / free_ns : 1;
    return part > 0 ? part : 0;
}

static int by_work(const void *a, const void *b)
{
    const struct gt_pool *x = a, *y = b;
    return x->free_ns > y->free_ns ? -1 : x->free_ns < y->free_ns;
}

/* Most of what its threads wait for is work, for which another of them has waited, too. */
static bool is_fed(const struct gt_pool *pool)
{
    return pool->fed >= pool->threads && pool->fed * 2 > pool->rests &&
           pool->shared * 4 >= pool->rests;
}

/* They hardly ever wait for work, and who has some for them waits until any of them takes it. */
static bool is_full(const struct gt_pool *pool)
{
    return pool->rest_ns * 10 < pool->life_ns && pool->shared * 4 + pool->threads >= pool->rests &&
           pool->awaited > pool->threads && pool->by_peers * 4 >= pool->awaited;
}

/* Its threads wait for each other, and what each does alone is not known: so does one more. */
static bool is_serial(const struct gt_pool *pool)
{
    return pool->blind_ns * 10 > pool->life_ns;
}

/* One that gets its work from others; and there is a CPU for one thread more. */
static bool can_grow(const struct search *s, const struct gt_pool *pool)
{
    enum { THREADS_MOST = 256 };
    return pool->threads > 1 && pool->threads <= THREADS_MOST && (is_fed(pool) || is_full(pool)) &&
           !is_serial(pool) && *pool->routine && s->all->cpus <= 0;
}

static void try_pools(struct search *s)
{
    const struct gt_graph *graph = s->sections->graph;
    size_t tried = 0, n = s->survey->pools;
    struct gt_pool *pool = gt_need(malloc((n + 1) * sizeof *pool));
    memcpy(pool, s->survey->pool, n * sizeof *pool);
    qsort(pool, n, sizeof *pool, by_work);
    for (size_t i = 0; i < n && tried < POOLS_MOST; i++) {
        if (!can_grow(s, &pool[i]))
            continue;
        tried++;
        for (size_t k = 0; k < graph->lanes; k++) {
            bool in = graph->lane[k].thread->routine == pool[i].routine;
            s->of_thread[k] = in ? part_of_each(&pool[i]) : 1;
        }
        consider(s, (struct gt_whatif){.kind = GT_MORE, .pool = pool[i]},
                 &(struct gt_change){.thread = s->of_thread}, UINT64_MAX);
    }
    free(pool);
}

/* Slots ---------------------------------------------------------------------------------------- */

static void try_slots(struct search *s)
{
    const uint32_t *slots = s->program->slots;
    size_t tried = 0;
    for (uint32_t i = 0; i < s->sections->graph->locks && tried < LOCKS_MOST; i++) {
        if (!slots[i])
            continue;
        tried++;
        bool lock = slots[i] == 1;
        struct gt_whatif it = {
            .kind = lock ? GT_FREE_LOCK : GT_SLOT, .lock = i, .taken = "", .slots = slots[i]};
        consider(s, it, &(struct gt_change){.free_lock = lock, .slot = !lock, .lock = i},
                 UINT64_MAX);
    }
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

static int by_score(const void *a, const void *b)
{
    const struct gt_whatif *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score;
}

static bool is_within(const struct gt_whatifs *all, double part)
{
    double length = (double)(all->to - all->from), base = (double)all->base_ns;
    return base >= (1 - part) * length && base <= (1 + part) * length &&
           all->forced * 20 <= all->waits + 20;
}

bool gt_whatifs_are_sound(const struct gt_whatifs *all)
{
    return is_within(all, 0.1);
}

bool gt_whatifs_are_rough(const struct gt_whatifs *all)
{
    return is_within(all, 0.3);
}

/* By the kernel's record, whoever had them. */
static bool lacks_cpu(const struct search *s)
{
    return s->sections->graph->threads.cpus && s->path->by_kind[GT_SCHED] * 20 > s->path->ns;
}

void gt_whatifs_find(struct gt_whatifs *all, struct gt_sections *sections,
                     const struct gt_path *path, const struct gt_survey *survey)
{
    const struct gt_graph *graph = sections->graph;
    uint32_t thread = path->watch_thread;
    if (thread == GT_NOBODY)
        return;
    struct search s = {.all = all, .sections = sections, .path = path, .survey = survey};
    s.program = gt_program_build(sections, thread, all->from, all->to);
    struct gt_outcome base = gt_replay_run(s.program, &(struct gt_change){0});
    all->base_ns = base.ns;

    all->forced = base.forced;
    all->waits = base.waits;
    all->cpus = s.program->cpus;
    s.of_section = gt_need(malloc((sections->n + 1) * sizeof *s.of_section));
    for (size_t i = 0; i < sections->n; i++)
        s.of_section[i] = 1;
    s.of_thread = gt_need(calloc(graph->lanes + 1, sizeof *s.of_thread));
    try_sections(&s);
    try_locks(&s);
    try_pools(&s);
    try_slots(&s);
    if (all->cpus > 0 || lacks_cpu(&s))
        consider(&s, (struct gt_whatif){.kind = GT_CPUS}, &(struct gt_change){.cpus = true},
                 UINT64_MAX);
    if (all->n)
        qsort(all->at, all->n, sizeof *all->at, by_score);
    gt_program_free(s.program);
    free(s.of_section);
    free(s.of_thread);
}
