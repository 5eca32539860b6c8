/* See omp_shares.h. */
#include "omp_shares.h"

#include "cpu_use.h"

#include "encoder/read/need.h"

#include <stdlib.h>

/* All of the regions that one call made, while they are summed up. */
struct sum {
    struct gt_omp_shares its;
    uint64_t *work; /* by thread */
    uint64_t most;  /* the greatest difference in one of them */
};

/*
 * How long the thread works in the region, by its account where the kernel's record of switches is
 * missing: what it waits for others, or for a CPU, is no work.
 */
static uint64_t work_in(const struct gt_graph *graph, uint32_t thread,
                        const struct gt_omp_region *region)
{
    struct gt_cpu_parts parts = gt_cpu_parts_of(graph, thread);
    double ns = 0;
    GT_EACH_STEP_IN(s, graph, thread, region->from, region->to) {
        uint64_t from = s->from > region->from ? s->from : region->from;
        uint64_t to = s->to < region->to ? s->to : region->to;
        bool works = s->kind != GT_SYNC && s->kind != GT_SCHED && to > from;
        double part = s->kind == GT_RUNNING ? parts.ran + parts.unseen : 1;
        ns += works ? (double)(to - from) * part : 0;
    }
    return (uint64_t)ns;
}

static bool is_in_team(const struct gt_graph *graph, uint32_t thread,
                       const struct gt_omp_region *region)
{
    const struct gt_lane *lane = &graph->lane[thread];
    const struct gt_thread_state *maker = lane->thread->maker;
    bool its = gt_omp_is_worker(lane->thread) && maker && maker->number == region->master;
    return thread == region->master || (its && lane->begin < region->to);
}

static void add_region(struct sum *sum, const struct gt_graph *graph,
                       const struct gt_omp_region *region)
{
    uint64_t most = 0, all = 0, n = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        uint64_t ns = is_in_team(graph, i, region) ? work_in(graph, i, region) : 0;
        sum->work[i] += ns;
        most = ns > most ? ns : most;
        all += ns;
        n += ns > 0;
    }
    uint64_t over = n ? most - all / n : 0;
    struct gt_omp_shares *its = &sum->its;
    its->regions++;
    its->threads = n > its->threads ? (uint32_t)n : its->threads;
    its->ns += region->to - region->from;
    its->over_ns += over;
    its->mean_ns += n ? all / n : 0;
    if (over > sum->most) {
        sum->most = over;
        its->at = region->from;
    }
}

static struct gt_omp_shares sum_of(const struct gt_graph *graph, const struct gt_callers *call,
                                   uint64_t from, uint64_t to)
{
    struct sum sum = {.its.call = call, .its.busiest = GT_NOBODY};
    sum.work = gt_need(calloc(graph->lanes + 1, sizeof *sum.work));
    for (size_t i = 0; i < graph->regions.n; i++) {
        const struct gt_omp_region *its = &graph->regions.at[i];
        if (gt_omp_is_same(its->call, call) && its->from >= from && its->to <= to)
            add_region(&sum, graph, its);
    }
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (sum.work[i] > sum.its.busiest_ns) {
            sum.its.busiest_ns = sum.work[i];
            sum.its.busiest = i;
        }
    }
    free(sum.work);
    return sum.its;
}

struct gt_omp_shares gt_omp_shares_find(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    enum { CALLS_MOST = 32, LOOKS_MOST = 2000000 }; /* a look: at a thread in a region */
    struct gt_omp_shares found = {0};
    const struct gt_omp_regions *all = &graph->regions;
    const struct gt_callers *call[CALLS_MOST];
    size_t n = 0;
    for (size_t i = 0; i < all->n && all->n * graph->lanes < LOOKS_MOST && n < CALLS_MOST; i++) {
        size_t k = 0;
        while (k < n && !gt_omp_is_same(call[k], all->at[i].call))
            k++;
        if (k < n)
            continue;
        call[n++] = all->at[i].call;
        struct gt_omp_shares its = sum_of(graph, all->at[i].call, from, to);
        found = its.over_ns > found.over_ns ? its : found;
    }
    return found;
}
