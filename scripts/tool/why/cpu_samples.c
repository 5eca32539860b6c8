/* See cpu_samples.h. */
#include "cpu_samples.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 5,   /* fewer samples say nothing of other stretches */
    LONGEST = 8, /* times the median length: a longer stretch waited, or had no CPU */
    LENGTHS = 64
};

GT_ORDER(by_time, struct gt_why_sample, GT_UP(at))

GT_ORDER(by_spot_and_time, struct gt_why_sample, GT_UP(spot) ?: GT_UP(at))

/* The recorded calls of a thread at a spot that has samples, by the logarithm of their length. */
struct calls {
    uint64_t samples, n, count[LENGTHS], ns[LENGTHS];
};

struct look {
    const struct gt_graph *graph;
    struct gt_lane *lane;
    uint32_t thread;
    struct gt_memo by_spot; /* → index + 1 */
    struct calls *at;
    size_t n;
};

static struct calls *calls_of(struct look *l, uint32_t spot)
{
    uint64_t *slot = gt_need(gt_memo_at(&l->by_spot, spot + UINT64_C(1)));
    if (!*slot) {
        *GT_ADD(l->at, l->n) = (struct calls){0};
        *slot = l->n;
    }
    return &l->at[*slot - 1];
}

/* Sets what the samples interrupted. */
static void find_spots(struct look *l)
{
    GT_CURSOR(c, l->graph, l->thread);
    for (size_t i = 0; i < l->lane->samples; i++) {
        const struct gt_lane_step *s = gt_cursor_seek(&c, l->lane->sample[i].at);
        l->lane->sample[i].spot = s ? s->spot : GT_NOBODY;
        if (s && s->kind == GT_SYSCALL)
            calls_of(l, s->spot)->samples++;
    }
}

static void measure_calls(struct look *l)
{
    GT_CURSOR(c, l->graph, l->thread);
    for (const struct gt_lane_step *s; l->n && (s = gt_cursor_next(&c));) {
        uint64_t slot = gt_memo_find(&l->by_spot, s->spot + UINT64_C(1)), ns = s->to - s->from;
        if (!slot || s->kind != GT_SYSCALL)
            continue;
        int length = ns ? 63 - __builtin_clzll(ns) : 0;
        l->at[slot - 1].n++;
        l->at[slot - 1].count[length]++;
        l->at[slot - 1].ns[length] += ns;
    }
}

/* How long the calls had a CPU, about. */
static uint64_t ran_in(const struct calls *calls)
{
    uint64_t seen = 0, ns = 0;
    int median = 0;
    while (median < LENGTHS - 1 && (seen += calls->count[median]) * 2 < calls->n)
        median++;
    uint64_t longest =
        LONGEST * calls->ns[median] / (calls->count[median] ? calls->count[median] : 1);
    for (int i = 0; i < LENGTHS; i++) {
        uint64_t most = calls->count[i] * longest;
        ns += calls->ns[i] < most ? calls->ns[i] : most;
    }
    return ns;
}

/*
 * Of the samples in calls, those that are more than the recorded calls can have stand for calls
 * that were too short to be recorded: the stretch before is theirs.
 */
static void move_to_stretches(struct look *l)
{
    uint64_t cpu = l->lane->thread->shares.cpu, *seen = gt_need(calloc(l->n + 1, sizeof *seen));
    GT_CURSOR(c, l->graph, l->thread);
    for (size_t i = 0; i < l->lane->samples && cpu; i++) {
        struct gt_why_sample *sample = &l->lane->sample[i];
        uint64_t slot = gt_memo_find(&l->by_spot, sample->spot + UINT64_C(1));
        if (!slot)
            continue;
        const struct calls *its = &l->at[slot - 1];
        uint64_t k = seen[slot - 1]++;
        uint64_t own = (uint64_t)((double)ran_in(its) * (double)l->lane->samples / (double)cpu);
        uint64_t more = its->samples > own + LEAST ? its->samples - own : 0;
        const struct gt_lane_step *s = gt_cursor_seek(&c, sample->at);
        s = s ? gt_cursor_seek(&c, s->from) : NULL;
        if (s && s->kind == GT_RUNNING && (k + 1) * more / its->samples > k * more / its->samples)
            sample->spot = s->spot;
    }
    free(seen);
}

static void sort_of_lane(const struct gt_graph *graph, uint32_t thread)
{
    struct gt_lane *lane = &graph->lane[thread];
    struct look l = {.graph = graph, .lane = lane, .thread = thread};
    qsort(lane->sample, lane->samples, sizeof *lane->sample, by_time);
    find_spots(&l);
    measure_calls(&l);
    move_to_stretches(&l);
    lane->by_spot = gt_need(malloc(lane->samples * sizeof *lane->by_spot));
    memcpy(lane->by_spot, lane->sample, lane->samples * sizeof *lane->by_spot);
    qsort(lane->by_spot, lane->samples, sizeof *lane->by_spot, by_spot_and_time);
    gt_memo_free(&l.by_spot);
    free(l.at);
}

void gt_samples_sort(struct gt_graph *graph)
{
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (graph->lane[i].samples)
            sort_of_lane(graph, i);
    }
}

static size_t first_from(const struct gt_why_sample *sample, size_t n,
                         const struct gt_why_sample *wanted,
                         int (*compare)(const void *, const void *))
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&sample[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t gt_lane_sample_from(const struct gt_lane *lane, uint64_t at)
{
    return first_from(lane->sample, lane->samples, &(struct gt_why_sample){.at = at}, by_time);
}

const struct gt_why_sample *gt_lane_sample_alike(const struct gt_lane *lane, uint32_t spot,
                                                 uint64_t at)
{
    const struct gt_why_sample *all = lane->by_spot, wanted = {.at = at, .spot = spot};
    size_t next = first_from(all, lane->samples, &wanted, by_spot_and_time), from = next, to = next;
    while (from && all[from - 1].spot == spot && next - from < LEAST)
        from--;
    while (to < lane->samples && all[to].spot == spot && to - next < LEAST)
        to++;
    if (to - from < LEAST)
        return NULL;
    return &all[next < to ? next : next - 1];
}
