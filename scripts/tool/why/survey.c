/* See survey.h. */
#include "survey.h"

#include "scripts/tool/report/idle.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdlib.h>

enum {
    SHORT_NS = 100000,      /* between two waits at one place: only a look whether there is work */
    TOGETHER_NS = 100000,   /* wake-ups of one broadcast */
    COUNTED_MOST = 1000000, /* waits: a sample is enough to know who feeds whom */
};

struct look {
    struct gt_survey *survey;
    struct gt_sections *sections;
    uint32_t thread;
    struct gt_pool *pool;
    uint32_t last_spot; /* of the last wait */
    bool last_woken;    /* it was ended by another thread */
    uint64_t between;   /* ns that it did something since */
    struct gt_memo feeders, groups, resting, feeding;
    size_t grouped, counted;
    double per_ns; /* columns */
};

static enum gt_band band_of(const struct gt_graph *graph, const struct gt_step *s)
{
    switch (s->kind) {
    case GT_RUNNING: return GT_BAND_RUNNING;
    case GT_SCHED: return GT_BAND_NO_CPU;
    case GT_SYSCALL:
    case GT_UNSEEN: return GT_BAND_CALLS;
    default: return gt_graph_is_lock_wait(graph, s) ? GT_BAND_LOCKS : GT_BAND_OTHER;
    }
}

static void draw(struct look *l, enum gt_band band, uint64_t from, uint64_t to)
{
    struct gt_survey *v = l->survey;
    double a = (double)(from - v->from) * l->per_ns, b = (double)(to - v->from) * l->per_ns;
    double *column = v->band[band];
    size_t i = (size_t)a;
    v->total[band] += b - a;
    for (; i + 1 < GT_COLUMNS && (double)i + 1 < b; i++) {
        column[i] += (double)i + 1 - a;
        a = (double)i + 1;
    }
    if (i < GT_COLUMNS)
        column[i] += b - a;
}

static bool is_new(struct gt_memo *memo, uint64_t key)
{
    uint64_t *seen = gt_need(gt_memo_at(memo, key | 1));
    bool fresh = !*seen;
    *seen = 1;
    return fresh;
}

/* Which threads are woken at one time by one other. */
static void note_group(struct look *l, struct gt_place_waits *p, const struct gt_step *s)
{
    uint64_t key = gt_hash_mix(gt_hash_mix(gt_hash_mix(0, s->spot), s->by), s->to / TOGETHER_NS);
    p->groups += is_new(&l->groups, key);
    p->woken += is_new(&l->groups, gt_hash_mix(key, l->thread + 1u));
    l->grouped++;
}

static void note_place(struct look *l, const struct gt_step *s, uint64_t ns)
{
    struct gt_place_waits *p = &l->survey->place[s->spot];
    bool again = l->last_spot == s->spot && l->between < SHORT_NS;
    p->ns += ns;
    if (again && !l->between) /* it goes on: for the mutex, after the condition variable */
        return;
    if (!p->count)
        p->section = gt_sections_of(l->sections, l->thread, s);
    p->threads += !p->count || p->thread != l->thread;
    p->thread = l->thread;
    p->of_lock |= s->lock != GT_NOBODY && gt_graph_is_lock_wait(l->sections->graph, s);
    p->count++;
    p->vain += again && l->last_woken;
    p->rounds += again && !l->last_woken && s->by == GT_NOBODY;
    if (ns > p->longest) {
        p->longest = ns;
        p->longest_at = s->from;
    }
    if (s->by != GT_NOBODY && l->grouped < COUNTED_MOST)
        note_group(l, p, s);
    l->last_spot = s->spot;
    l->last_woken = s->by != GT_NOBODY;
    l->between = 0;
}

static void note_lock(struct look *l, const struct gt_step *s, uint64_t ns)
{
    struct gt_lock_waits *lock = &l->survey->lock[s->lock];
    lock->threads += !lock->count || lock->thread != l->thread;
    lock->thread = l->thread;
    lock->ns += ns;
    lock->count++;
    if (ns > lock->longest) {
        lock->longest = ns;
        lock->longest_at = s->from;
    }
    l->pool->lock_ns += ns;
}

static void note_rest(struct look *l, const struct gt_step *s, uint64_t ns)
{
    l->pool->rest_ns += ns;
    l->pool->idle_ns += gt_is_idle_at(l->sections->graph->spot[s->spot].stack, s->kind) ? ns : 0;
    if (l->counted++ > COUNTED_MOST)
        return;
    l->pool->rests++;
    if (s->lock != GT_NOBODY) {
        uint64_t key = (l->survey->pool_of[l->thread] + UINT64_C(1)) << 32 | s->lock;
        uint64_t *first = gt_need(gt_memo_at(&l->resting, key));
        *first = *first ? *first : l->thread + UINT64_C(1);
        l->pool->shared += *first != l->thread + UINT64_C(1);
    }
    if (s->by == GT_NOBODY || l->survey->pool_of[s->by] == l->survey->pool_of[l->thread])
        return;
    l->pool->fed++;
    uint64_t *fed = gt_need(
        gt_memo_at(&l->feeders, (l->survey->pool_of[l->thread] + UINT64_C(1)) << 32 | s->by));
    if (++*fed > l->pool->fed_by_that) {
        l->pool->fed_by_that = *fed;
        l->pool->feeder = s->by;
    }
}

/* A thread that has work to give waits until somebody takes some. */
static void note_room(struct look *l, const struct gt_step *s)
{
    const struct gt_survey *v = l->survey;
    struct gt_pool *pool = s->by != GT_NOBODY ? &v->pool[v->pool_of[s->by]] : l->pool;
    if (pool == l->pool || s->lock == GT_NOBODY || l->counted++ > COUNTED_MOST)
        return;
    uint64_t key = (v->pool_of[s->by] + UINT64_C(1)) << 32 | s->lock;
    uint64_t *first = gt_need(gt_memo_at(&l->feeding, key));
    *first = *first ? *first : s->by + UINT64_C(1);
    pool->awaited++;
    pool->by_peers += *first != s->by + UINT64_C(1);
}

static void add_part(void *arg, const struct gt_section_part *part)
{
    struct look *l = arg;
    bool held = l->sections->at[part->section].lock != GT_NOBODY;
    *(held ? &l->pool->held_ns : &l->pool->free_ns) += part->to - part->from;
}

static void look_at(struct look *l, const struct gt_step *s)
{
    struct gt_survey *v = l->survey;
    const struct gt_graph *graph = l->sections->graph;
    uint64_t from = s->from > v->from ? s->from : v->from, to = s->to < v->to ? s->to : v->to;
    uint64_t ns = to > from ? to - from : 0;
    enum gt_band band = band_of(graph, s);
    if (!ns)
        return;
    draw(l, band, from, to);
    if (s->by != GT_NOBODY)
        v->posts[s->by]++;
    l->pool->life_ns += ns;
    bool waits = band == GT_BAND_LOCKS || band == GT_BAND_OTHER;
    if (waits)
        note_place(l, s, ns);
    else if (band == GT_BAND_CALLS)
        l->between = SHORT_NS; /* it has done something */
    else if (band != GT_BAND_NO_CPU)
        l->between += ns;
    /* One that gives up to look again waits for its peers, too. */
    bool peers = s->by != GT_NOBODY ? v->pool_of[s->by] == v->pool_of[l->thread]
                                    : s->kind == GT_SYNC && s->ended && s->lock != GT_NOBODY;
    l->pool->peer_ns += peers ? ns : 0;
    l->pool->blind_ns += peers && s->owner == GT_NOBODY ? ns : 0;
    if (band == GT_BAND_LOCKS)
        note_lock(l, s, ns);
    else if (s->kind == GT_SYNC && !graph->spot[s->spot].busy)
        note_rest(l, s, ns);
    else if (s->kind == GT_SYNC)
        note_room(l, s);
    if (band != GT_BAND_NO_CPU && s->kind != GT_SYNC)
        gt_sections_split(l->sections, l->thread, s, from, to, add_part, l);
}

static void look_at_thread(struct look *l)
{
    const struct gt_survey *v = l->survey;
    struct gt_cursor c = {.graph = l->sections->graph, .thread = l->thread};
    l->last_spot = UINT32_MAX;
    l->pool = &l->survey->pool[v->pool_of[l->thread]];
    for (const struct gt_step *s = gt_cursor_from(&c, v->from); s && s->from < v->to;
         s = gt_cursor_next(&c))
        look_at(l, s);
    gt_cursor_close(&c);
}

static void find_pools(struct gt_survey *v, const struct gt_graph *graph)
{
    struct gt_memo by_routine = {0};
    v->pool = gt_need(calloc(graph->lanes + 1, sizeof *v->pool));
    v->pool_of = gt_need(calloc(graph->lanes + 1, sizeof *v->pool_of));
    v->posts = gt_need(calloc(graph->lanes + 1, sizeof *v->posts));
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        const char *routine = lane->thread->routine;
        uint64_t *slot = gt_need(gt_memo_at(&by_routine, (uintptr_t)routine + 1));
        if (!*slot) {
            v->pool[v->pools] =
                (struct gt_pool){.routine = routine, .first = i, .feeder = GT_NOBODY};
            *slot = ++v->pools;
        }
        v->pool_of[i] = (uint32_t)(*slot - 1);
        v->pool[*slot - 1].threads += lane->steps && lane->begin < v->to && lane->until > v->from;
    }
    gt_memo_free(&by_routine);
}

void gt_survey_make(struct gt_survey *v, struct gt_sections *sections, uint64_t from, uint64_t to)
{
    const struct gt_graph *graph = sections->graph;
    *v = (struct gt_survey){.from = from, .to = to};
    v->place = gt_need(calloc(graph->spots + 1, sizeof *v->place));
    v->lock = gt_need(calloc(graph->locks + 1, sizeof *v->lock));
    find_pools(v, graph);
    struct look l = {.survey = v, .sections = sections, .per_ns = GT_COLUMNS / (double)(to - from)};
    for (l.thread = 0; l.thread < graph->lanes; l.thread++)
        look_at_thread(&l);
    for (int i = 0; i < GT_BANDS; i++)
        v->total[i] /= GT_COLUMNS;
    gt_memo_free(&l.feeders);
    gt_memo_free(&l.groups);
    gt_memo_free(&l.resting);
    gt_memo_free(&l.feeding);
}

/* Parallelism ---------------------------------------------------------------------------------- */

struct moment {
    uint64_t at;
    int by;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool works(const struct gt_step *s)
{
    return s->kind == GT_RUNNING || s->kind == GT_SYSCALL || s->kind == GT_UNSEEN ||
           (s->by == GT_NOBODY && (s->kind == GT_SLEEP || s->kind == GT_NETWORK));
}

double gt_survey_parallelism(const struct gt_survey *v, const struct gt_graph *graph, size_t pool,
                             uint64_t from, uint64_t to, double *part)
{
    struct moment *at = NULL;
    size_t n = 0, room = 0;
    uint64_t any = 0, sum = 0;
    int now = 0;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        struct gt_cursor c = {.graph = graph, .thread = i};
        if (v->pool_of[i] != pool)
            continue;
        for (const struct gt_step *s = gt_cursor_from(&c, from); s && s->from < to;
             s = gt_cursor_next(&c)) {
            if (!works(s) || s->to <= from)
                continue;
            at = gt_need_room(at, n + 1, &room, sizeof *at);
            at[n++] = (struct moment){s->from > from ? s->from : from, 1};
            at[n++] = (struct moment){s->to < to ? s->to : to, -1};
        }
        gt_cursor_close(&c);
    }
    if (n)
        qsort(at, n, sizeof *at, by_time);
    for (size_t i = 0; i + 1 < n; i++) {
        now += at[i].by;
        uint64_t ns = at[i + 1].at - at[i].at;
        any += now > 0 ? ns : 0;
        sum += ns * (uint64_t)(now > 0 ? now : 0);
    }
    free(at);
    *part = (double)any / (double)(to - from);
    return any ? (double)sum / (double)any : 0;
}
