/* See cpu_use.h. */
#include "cpu_use.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

struct moment {
    uint64_t at;
    int running, runnable;
};

GT_ORDER(by_moment, struct moment, GT_UP(at))

struct moments {
    struct moment *at;
    size_t n;
    uint64_t ran, delayed;
};

static void add_both_ends(struct moments *m, const struct gt_lane_step *s, bool runs)
{
    for (int end = 0; end < 2; end++) {
        int by = end ? -1 : 1;
        *GT_ADD(m->at, m->n) = (struct moment){end ? s->to : s->from, runs ? by : 0, runs ? 0 : by};
    }
    *(runs ? &m->ran : &m->delayed) += s->to - s->from;
}

static void add_moments(struct moments *m, const struct gt_graph *graph, uint32_t thread,
                        uint64_t from, uint64_t to)
{
    GT_EACH_STEP_IN(s, graph, thread, from, to) {
        bool runs = s->kind == GT_RUNNING;
        if (runs || (s->kind == GT_SCHED && s->to - s->from > GT_USUAL_WAKE_NS))
            add_both_ends(m, s, runs);
    }
}

static void sort_moments(struct moments *m)
{
    if (m->n)
        qsort(m->at, m->n, sizeof *m->at, by_moment);
}

static struct moments find_moments(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    struct moments m = {0};
    for (uint32_t i = 0; i < graph->lanes; i++)
        add_moments(&m, graph, i, from, to);
    sort_moments(&m);
    return m;
}

/* Time in run queues that is in no step of its own, but in those in which the thread runs. */
static uint64_t hidden_queue(const struct gt_shares *s)
{
    return s->queue > s->told[GT_SCHED] ? s->queue - s->told[GT_SCHED] : 0;
}

struct gt_cpu_parts gt_cpu_parts_of(const struct gt_graph *graph, uint32_t thread)
{
    enum { LEAST_PERCENT = 10, LEAST_NS = 10000000 }; /* it counts in ticks on some machines */
    const struct gt_shares *shares = &graph->lane[thread].thread->shares;
    uint64_t off = shares->unseen, all = shares->cpu + hidden_queue(shares) + off;
    if (off < LEAST_NS || off * 100 < all * LEAST_PERCENT) {
        all -= off;
        off = 0;
    }
    if (!graph->threads.accounts || graph->threads.cpus || !all)
        return (struct gt_cpu_parts){.ran = 1};
    double ran = (double)shares->cpu / (double)all, least = graph->lane[thread].ran_least;
    double unseen = (double)off / (double)all;
    least = least < 1 - unseen ? least : 1 - unseen;
    return (struct gt_cpu_parts){ran > least ? ran : least, unseen};
}

/*
 * Whether the thread computes only while it has the lock: it has no more CPU time than that, except
 * for holds that are not recorded.
 */
static bool computes_with(const struct gt_lane *lane, uint32_t lock)
{
    uint64_t held = gt_lane_held(lane, lock, 0, UINT64_MAX);
    return held && lane->thread->shares.cpu <= held + held / 4;
}

/* The time in which any of the threads ran, by its events. */
static uint64_t any_ran(const struct moments *m)
{
    uint64_t ns = 0;
    int running = 0;
    for (size_t i = 0; i + 1 < m->n; i++) {
        running += m->at[i].running;
        ns += running > 0 ? m->at[i + 1].at - m->at[i].at : 0;
    }
    return ns;
}

static void find_use_with(struct gt_graph *graph, uint32_t gil)
{
    bool *its = gt_need(calloc(graph->lanes + 1, sizeof *its));
    struct moments m = {0};
    uint64_t cpu = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        its[i] = computes_with(&graph->lane[i], gil);
        if (!its[i])
            continue;
        add_moments(&m, graph, i, 0, UINT64_MAX);
        cpu += graph->lane[i].thread->shares.cpu;
    }
    sort_moments(&m);
    uint64_t ran = any_ran(&m);
    for (uint32_t i = 0; i < graph->lanes && ran; i++) {
        if (its[i])
            graph->lane[i].ran_least = cpu < ran ? (double)cpu / (double)ran : 1;
    }
    free(m.at);
    free(its);
}

void gt_cpu_use_find(struct gt_graph *graph)
{
    for (uint32_t i = 0; i < graph->locks; i++) {
        if (gt_lock_is_gil(graph->lock[i]))
            find_use_with(graph, i);
    }
}

/*
 * The number of CPUs that the threads ran on. A CPU on which they ran only briefly does not count.
 */
static size_t count_seats(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    enum { PASSED_BY = 20 }; /* a CPU with less than this part of the average does not count */
    struct gt_memo by_p = {0};
    uint64_t *ran = NULL, sum = 0;
    size_t n = 0, seats = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        GT_EACH_STEP_IN(s, graph, i, from, to) {
            if (s->kind != GT_RUNNING || s->p >= graph->threads.cpus)
                continue;
            uint64_t *slot = gt_need(gt_memo_at(&by_p, s->p + UINT64_C(1)));
            if (!*slot) {
                *GT_ADD(ran, n) = 0;
                *slot = n;
            }
            ran[*slot - 1] += s->to - s->from;
            sum += s->to - s->from;
        }
    }
    for (size_t i = 0; i < n; i++)
        seats += ran[i] * n * PASSED_BY > sum;
    gt_memo_free(&by_p);
    free(ran);
    return seats;
}

double gt_measure_cpus(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    enum { LEAST_PERCENT = 5, LEAST_COUNTED_PERCENT = 20 };
    const struct gt_threads *threads = &graph->threads;
    uint64_t cpu = 0, queue = 0, hidden = 0, crowded = 0;
    double busy = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        cpu += t->shares.cpu;
        queue += t->shares.queue;
        hidden += hidden_queue(&t->shares);
    }
    bool counted = !threads->cpus && threads->accounts && queue * 100 > cpu * LEAST_COUNTED_PERCENT;
    struct moments m = find_moments(graph, from, to);
    bool delayed = counted || (threads->cpus && m.delayed * 100 > m.ran * LEAST_PERCENT);
    int running = 0, runnable = 0;
    for (size_t i = 0; delayed && i + 1 < m.n; i++) {
        running += m.at[i].running;
        runnable += m.at[i].runnable;
        uint64_t ns = m.at[i + 1].at - m.at[i].at;
        bool counts = counted ? running > 0 : runnable > 0;
        crowded += counts ? ns : 0;
        busy += counts ? (double)ns * running : 0;
    }
    free(m.at);
    if (counted && m.ran)
        busy *= (double)cpu / (double)(cpu + hidden);
    double had = crowded ? busy / (double)crowded : 0;
    if (had > 0 && had >= (counted ? 1.5 : 0.5 * (double)count_seats(graph, from, to)))
        return had;
    return 0; /* other processes used the CPUs, and would do so again */
}

/* What ran there -------------------------------------------------------------------------------
 */

void gt_delays_add(struct gt_delays *delays, uint64_t from, uint64_t to, uint32_t p)
{
    *GT_ADD(delays->at, delays->n) = (struct gt_delay){from, to, p};
    delays->ns += to - from;
}

GT_ORDER(by_cpu, struct gt_delay, GT_UP(p) ?: GT_UP(from))

/* Index of the first delay on that CPU that begins at `at` or later. */
static size_t delay_from(const struct gt_delays *delays, uint32_t p, uint64_t at)
{
    size_t low = 0, high = delays->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gt_delay *d = &delays->at[middle];
        if (d->p < p || (d->p == p && d->from < at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * How long the thread ran on the CPUs of these delays while they lasted. longest: length of the
 * longest delay.
 */
static uint64_t ran_meanwhile(const struct gt_delays *delays, uint64_t longest,
                              const struct gt_graph *graph, uint32_t thread)
{
    uint64_t sum = 0;
    GT_EACH_STEP(s, graph, thread) {
        if (s->kind != GT_RUNNING || s->p == GT_NOBODY)
            continue;
        uint64_t first = s->from > longest ? s->from - longest : 0;
        for (size_t i = delay_from(delays, s->p, first); i < delays->n; i++) {
            const struct gt_delay *d = &delays->at[i];
            if (d->p != s->p || d->from >= s->to)
                break;
            uint64_t from = d->from > s->from ? d->from : s->from;
            uint64_t to = d->to < s->to ? d->to : s->to;
            sum += to > from ? to - from : 0;
        }
    }
    return sum;
}

struct gt_cpu_users gt_delays_users(const struct gt_delays *all, const struct gt_graph *graph)
{
    struct gt_cpu_users users = {.thread = GT_NOBODY};
    struct gt_delays known = {0};
    uint64_t longest = 0, most = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct gt_delay *d = &all->at[i];
        if (d->p >= graph->threads.cpus)
            continue;
        gt_delays_add(&known, d->from, d->to, d->p);
        longest = d->to - d->from > longest ? d->to - d->from : longest;
    }
    if (known.n)
        qsort(known.at, known.n, sizeof *known.at, by_cpu);
    for (uint32_t i = 0; known.n && i < graph->lanes; i++) {
        uint64_t ns = ran_meanwhile(&known, longest, graph, i);
        users.ours += ns;
        if (ns > most) {
            most = ns;
            users.thread = i;
        }
    }
    users.others = known.ns > users.ours ? known.ns - users.ours : 0;
    free(known.at);
    return users;
}
