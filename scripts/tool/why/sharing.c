/* See sharing.h. */
#include "sharing.h"

#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    TOGETHER_PERCENT = 5,  /* of the run, from the first end to the last */
    UNEQUAL_PERCENT = 125, /* most holds of a thread, per least */
    LEAST_PIECES = 10,     /* of a thread */
    MORE_PIECES = 2,  /* of the thread with most: one more may be what was left of a division */
    SOON_PERCENT = 2, /* of their life, from the first end to the last */
    REST_PERCENT = 25 /* of the threads' life: what waits for the others had its part before */
};

/* The ends of a pool's threads. */
struct ends {
    uint64_t first, last, sum, threads;
    bool alive; /* one of them did not end */
};

static void add_end(struct ends *e, uint64_t end)
{
    e->first = !e->threads || end < e->first ? end : e->first;
    e->last = end > e->last ? end : e->last;
    e->alive |= end == UINT64_MAX;
    e->sum += end;
    e->threads++;
}

static bool has_ended(const struct gt_graph *graph, uint32_t thread)
{
    return graph->lane[thread].thread->state == GT_G_NONE;
}

/* In the trace, also how often each thread had a lock. */
static bool shares_work(const struct gt_sharing *s, size_t pool)
{
    const struct gt_graph *graph = s->program->sections->graph;
    uint64_t most = 0, least = UINT64_MAX, length = s->program->to - s->program->from;
    struct ends e = {0};
    for (uint32_t i = 0; i < s->program->roles; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        if (s->survey->pool_of[i] != pool)
            continue;
        add_end(&e, has_ended(graph, i) ? lane->until : UINT64_MAX);
        most = lane->holds > most ? lane->holds : most;
        least = lane->holds < least ? lane->holds : least;
    }
    return e.threads > 1 && !e.alive && (e.last - e.first) * 100 <= length * TOGETHER_PERCENT &&
           least && most * 100 >= least * UNEQUAL_PERCENT;
}

/* How often the thread is in that section. */
static uint64_t visits(const struct gt_program *p, uint32_t thread, uint32_t section)
{
    uint64_t n = 0;
    for (size_t i = 0; i < p->role[thread].n; i++)
        n += p->role[thread].op[i].type == GT_OP_WORK && p->role[thread].op[i].arg == section;
    return n;
}

struct section_visits {
    uint32_t last; /* the thread that came last, + 1 */
    uint64_t threads, n;
};

/* Whether more pieces of work can be counted by a than by b: rather calls, as code is between all.
 */
static bool counts_more(const struct gt_sections *sections, const struct section_visits *at,
                        uint32_t a, uint32_t b)
{
    bool calls_a = sections->at[a].kind != GT_RUNNING, calls_b = sections->at[b].kind != GT_RUNNING;
    return calls_a != calls_b ? calls_a : at[a].n > at[b].n;
}

/* A section in which all threads of the pool are, and often. GT_NOBODY: there is none. */
static uint32_t common_section(const struct gt_sharing *s, size_t pool)
{
    const struct gt_program *p = s->program;
    struct section_visits *at = gt_need(calloc(p->sections->n + 1, sizeof *at));
    uint32_t found = GT_NOBODY;
    for (uint32_t i = 0; i < p->roles; i++) {
        for (size_t k = 0; s->survey->pool_of[i] == pool && k < p->role[i].n; k++) {
            const struct gt_op *op = &p->role[i].op[k];
            if (op->type != GT_OP_WORK || p->sections->at[op->arg].kind == GT_SCHED)
                continue;
            at[op->arg].threads += at[op->arg].last != i + 1;
            at[op->arg].last = i + 1;
            at[op->arg].n++;
        }
    }
    for (uint32_t i = 0; i < p->sections->n; i++) {
        if (at[i].threads == s->survey->pool[pool].threads &&
            (found == GT_NOBODY || counts_more(p->sections, at, i, found)))
            found = i;
    }
    free(at);
    return found;
}

/*
 * Whether the threads end together, within about one piece of work, although they did a
 * different number of pieces: each took the next one when it was done with one. Notes the numbers.
 */
static bool takes_pieces(const struct gt_sharing *s, size_t number)
{
    const struct gt_graph *graph = s->program->sections->graph;
    const struct gt_pool *pool = &s->survey->pool[number];
    uint64_t most = 0, least = UINT64_MAX, life = 0;
    struct ends e = {0};
    if (pool->threads < 2 || (pool->rest_ns + pool->blind_ns) * 100 > pool->life_ns * REST_PERCENT)
        return false;
    uint32_t section = common_section(s, number);
    for (uint32_t i = 0; i < s->program->roles && section != GT_NOBODY; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        if (s->survey->pool_of[i] != number)
            continue;
        uint64_t n = s->pieces[i] = visits(s->program, i, section);
        add_end(&e, has_ended(graph, i) ? lane->until : UINT64_MAX);
        life = lane->until - lane->begin > life ? lane->until - lane->begin : life;
        most = n > most ? n : most;
        least = n < least ? n : least;
    }
    uint64_t apart = e.last - e.first;
    return e.threads > 1 && !e.alive && least >= LEAST_PIECES && most >= least + MORE_PIECES &&
           (apart * least * 2 <= life * 3 || apart * 100 <= life * SOON_PERCENT);
}

struct gt_sharing gt_sharing_find(const struct gt_program *program, const struct gt_survey *survey)
{
    struct gt_sharing s = {.program = program, .survey = survey};
    s.end = gt_need(malloc((program->roles + 1) * sizeof *s.end));
    s.shares = gt_need(calloc(survey->pools + 1, sizeof *s.shares));
    s.takes = gt_need(calloc(survey->pools + 1, sizeof *s.takes));
    s.pieces = gt_need(calloc(program->roles + 1, sizeof *s.pieces));
    for (size_t i = 0; i < survey->pools; i++) {
        s.takes[i] = takes_pieces(&s, i);
        s.shares[i] = s.takes[i] || shares_work(&s, i);
    }
    return s;
}

uint64_t gt_sharing_time_in(const struct gt_sharing *s, uint32_t section)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->program->roles; i++) {
        const struct gt_thread_role *role = &s->program->role[i];
        uint64_t ns = 0;
        for (size_t k = 0; s->takes[s->survey->pool_of[i]] && k < role->n; k++) {
            bool works = role->op[k].type == GT_OP_WORK || role->op[k].type == GT_OP_COMPUTE;
            ns += works && role->op[k].arg == section ? role->op[k].ns : 0;
        }
        most = ns > most ? ns : most;
    }
    return most;
}

/* When the pool's threads end together, if each takes pieces as fast as it did in the replay. */
static uint64_t even_end(const struct gt_sharing *s, uint32_t pool)
{
    const struct gt_program *p = s->program;
    uint64_t begin = UINT64_MAX, all = 0;
    double per_ns = 0;
    for (uint32_t i = 0; i < p->roles; i++) {
        uint64_t its = p->sections->graph->lane[i].begin;
        if (s->survey->pool_of[i] == pool && its < begin)
            begin = its;
    }
    begin = begin > p->from ? begin - p->from : 0;
    for (uint32_t i = 0; i < p->roles; i++) {
        if (s->survey->pool_of[i] != pool || s->end[i] <= begin)
            continue;
        all += s->pieces[i];
        per_ns += (double)s->pieces[i] / (double)(s->end[i] - begin);
    }
    return begin + (per_ns > 0 ? (uint64_t)((double)all / per_ns) : 0);
}

/* Whether the thread ends just after one of the pool, for which it works: it ends with that one. */
static bool follows(const struct gt_sharing *s, uint32_t thread, uint32_t pool, uint64_t ns)
{
    for (uint32_t i = 0; i < s->program->roles; i++) {
        if (s->survey->pool_of[i] == pool && s->end[i] <= s->end[thread] &&
            (s->end[thread] - s->end[i]) * 100 <= ns * TOGETHER_PERCENT)
            return true;
    }
    return false;
}

uint64_t gt_sharing_saves(const struct gt_sharing *s, uint64_t ns, bool pieces)
{
    const bool *shares = pieces ? s->takes : s->shares;
    const struct gt_graph *graph = s->program->sections->graph;
    uint32_t last = GT_NOBODY; /* of threads that share their work, the last one to end */
    uint64_t others = 0;       /* the last end outside of its pool */
    struct ends e = {0};
    for (uint32_t i = 0; i < s->program->roles; i++) {
        if (i == s->program->target || !has_ended(graph, i))
            s->end[i] = UINT64_MAX;
        if (s->end[i] != UINT64_MAX && shares[s->survey->pool_of[i]])
            last = last == GT_NOBODY || s->end[i] > s->end[last] ? i : last;
    }
    if (last == GT_NOBODY)
        return 0;
    uint32_t pool = s->survey->pool_of[last];
    for (uint32_t i = 0; i < s->program->roles; i++) {
        if (s->survey->pool_of[i] == pool)
            add_end(&e, s->end[i]);
        else if (s->end[i] != UINT64_MAX && s->end[i] > others && !follows(s, i, pool, ns))
            others = s->end[i];
    }
    uint64_t average = s->takes[pool] && !e.alive ? even_end(s, pool) : e.sum / e.threads;
    uint64_t then = average > others ? average : others;
    return !e.alive && then < e.last ? e.last - then : 0;
}

void gt_sharing_free(struct gt_sharing *s)
{
    free(s->shares);
    free(s->takes);
    free(s->pieces);
    free(s->end);
}
