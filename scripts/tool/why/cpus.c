/* See cpus.h. */
#include "cpus.h"

#include "encoder/read/need.h"

#include <stdlib.h>

struct moment {
    uint64_t at;
    int running, runnable;
};

static int by_moment(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

struct moments {
    struct moment *at;
    size_t n, room;
    uint64_t ran, delayed;
};

static void add_both_ends(struct moments *m, const struct gt_step *s, bool runs)
{
    for (int end = 0; end < 2; end++) {
        int by = end ? -1 : 1;
        m->at = gt_need_room(m->at, m->n, &m->room, sizeof *m->at);
        m->at[m->n++] = (struct moment){end ? s->to : s->from, runs ? by : 0, runs ? 0 : by};
    }
    *(runs ? &m->ran : &m->delayed) += s->to - s->from;
}

static struct moments find_moments(const struct gt_graph *graph, uint64_t from, uint64_t to)
{
    struct moments m = {0};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        struct gt_cursor c = {.graph = graph, .thread = i};
        for (const struct gt_step *s = gt_cursor_from(&c, from); s && s->from < to;
             s = gt_cursor_next(&c)) {
            bool runs = s->kind == GT_RUNNING;
            if (runs || (s->kind == GT_SCHED && s->to - s->from > GT_USUAL_WAKE_NS))
                add_both_ends(&m, s, runs);
        }
        gt_cursor_close(&c);
    }
    if (m.n)
        qsort(m.at, m.n, sizeof *m.at, by_moment);
    return m;
}

double gt_cpu_share(const struct gt_thread_state *t)
{
    uint64_t cpu = t->shares.cpu, all = cpu + t->shares.queue;
    return all ? (double)cpu / (double)all : 1;
}

double gt_measure_cpus(const struct gt_graph *graph, uint64_t from, uint64_t to, bool *counted)
{
    enum { LEAST_PERCENT = 5, LEAST_COUNTED_PERCENT = 20 };
    const struct gt_threads *threads = &graph->threads;
    uint64_t cpu = 0, queue = 0, crowded = 0;
    double busy = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        cpu += t->shares.cpu;
        queue += t->shares.queue;
    }
    *counted = !threads->cpus && threads->accounts && queue * 100 > cpu * LEAST_COUNTED_PERCENT;
    struct moments m = find_moments(graph, from, to);
    bool delayed = *counted || (threads->cpus && m.delayed * 100 > m.ran * LEAST_PERCENT);
    int running = 0, runnable = 0;
    for (size_t i = 0; delayed && i + 1 < m.n; i++) {
        running += m.at[i].running;
        runnable += m.at[i].runnable;
        uint64_t ns = m.at[i + 1].at - m.at[i].at;
        bool counts = *counted ? running > 0 : runnable > 0;
        crowded += counts ? ns : 0;
        busy += counts ? (double)ns * running : 0;
    }
    free(m.at);
    if (*counted && m.ran)
        busy *= (double)cpu / (double)(cpu + queue);
    double had = crowded ? busy / (double)crowded : 0;
    double least = *counted ? 1.5 : 0.7 * (double)threads->cpus;
    *counted &= had >= least;
    return had >= least ? had : 0; /* less: other processes had them, and would again */
}
