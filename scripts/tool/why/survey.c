/* See survey.h. */
#include "survey.h"

#include "cpu_use.h"
#include "joins.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/in_kernel.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_NS = 100000,      /* between two waits at one place: only a look for work */
    TOGETHER_NS = 100000,   /* wake-ups of one broadcast */
    COUNTED_MOST = 1000000, /* waits: a sample is enough to know which thread feeds which */
};

struct look {
    struct gt_survey *survey;
    struct gt_sections *sections;
    uint32_t thread;
    struct gt_pool *pool;
    struct gt_rounds rounds; /* of the thread */
    struct gt_memo feeders, groups, times, resting, feeding;
    size_t grouped, counted;
    uint32_t woken_at; /* the spot of the thread's last wait for a signal, if a thread ended it */
    double per_ns;     /* columns */
    struct gt_cpu_parts parts; /* of the thread's running */
    double in_calls, in_waits; /* the part of its calls, and of its waits and polls, on a CPU */
};

static enum gt_band band_of(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    switch (s->kind) {
    case GT_RUNNING: return GT_BAND_RUNNING;
    case GT_SCHED: return GT_BAND_NO_CPU;
    case GT_SYSCALL:
    case GT_UNSEEN: return GT_BAND_CALLS;
    default: return gt_graph_is_lock_wait(graph, s) ? GT_BAND_LOCKS : GT_BAND_OTHER;
    }
}

/* threads: how many, 1 or the part of one that was in this state. */
static void draw(struct look *l, enum gt_band band, double threads, uint64_t from, uint64_t to)
{
    struct gt_survey *v = l->survey;
    double a = (double)(from - v->from) * l->per_ns, b = (double)(to - v->from) * l->per_ns;
    double *column = v->band[band];
    size_t i = (size_t)a;
    v->total[band] += threads * (b - a);
    for (; i + 1 < GT_COLUMNS && (double)i + 1 < b; i++) {
        column[i] += threads * ((double)i + 1 - a);
        a = (double)i + 1;
    }
    if (i < GT_COLUMNS)
        column[i] += threads * (b - a);
}

/* Whether the wait was ended by a call that wakes one thread, however soon others follow it. */
static bool is_signalled(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->waker && strstr(gt_leaf_of(graph->stack[s->waker]), "_signal");
}

/*
 * Counts the threads that one thread wakes at one time. A thread that is woken twice in that time
 * was woken by two broadcasts.
 */
static void note_group(struct look *l, struct gt_place_waits *p, const struct gt_lane_step *s)
{
    uint64_t at = is_signalled(l->sections->graph, s) ? s->to : s->to / TOGETHER_NS;
    uint64_t key = gt_hash_mix(gt_hash_mix(gt_hash_mix(0, s->spot), s->by), at);
    uint64_t *times = gt_need(gt_memo_at(&l->times, gt_hash_mix(key, l->thread)));
    p->groups += gt_need_new(&l->groups, gt_hash_mix(key, ++*times));
    p->woken++;
    l->grouped++;
}

static void note_waiter(struct gt_survey *v, uint32_t spot, uint32_t thread)
{
    *GT_ADD(v->waiter, v->waiters) = (struct gt_place_waiter){spot, thread};
    v->place[spot].threads++;
}

/* Whether the thread works there for others, however short that is: it gives them something. */
static bool gives(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->kind == GT_SYSCALL && graph->spot[s->spot].gives;
}

enum gt_round gt_rounds_next(struct gt_rounds *r, const struct gt_graph *graph,
                             const struct gt_lane_step *s)
{
    enum gt_band band = band_of(graph, s);
    if (band == GT_BAND_RUNNING || band == GT_BAND_CALLS)
        r->between += gives(graph, s) ? SHORT_NS : s->to - s->from;
    bool waits = band == GT_BAND_LOCKS || band == GT_BAND_OTHER;
    if (waits && r->spot == s->spot && !r->between && !s->anew)
        return GT_GOES_ON;
    if (!waits || gt_graph_is_gil_wait(graph, s))
        return GT_ELSEWHERE;
    bool again = r->spot == s->spot && r->between < SHORT_NS;
    enum gt_round its = !again ? GT_ELSEWHERE : r->woken ? GT_AGAIN_WOKEN : GT_AGAIN;
    *r = (struct gt_rounds){s->spot, s->by != GT_NOBODY, 0};
    return its;
}

static void note_place(struct look *l, const struct gt_lane_step *s, uint64_t ns,
                       enum gt_round round)
{
    struct gt_place_waits *p = &l->survey->place[s->spot];
    p->ns += ns;
    if (round == GT_GOES_ON)
        return;
    if (!p->count)
        p->section = gt_sections_of(l->sections, l->thread, s);
    if (!p->count || p->thread != l->thread)
        note_waiter(l->survey, s->spot, l->thread);
    p->thread = l->thread;
    p->lock = s->lock;
    p->of_lock |= s->lock != GT_NOBODY && gt_graph_is_lock_wait(l->sections->graph, s);
    p->count++;
    p->kept += s->kept && l->woken_at == s->spot;
    p->rounds += round == GT_AGAIN && s->by == GT_NOBODY;
    if (ns > p->longest) {
        p->longest = ns;
        p->longest_at = s->from;
    }
    p->last_from = s->from;
    p->last_to = s->to;
    if (s->by != GT_NOBODY && l->grouped < COUNTED_MOST)
        note_group(l, p, s);
}

static void note_lock(struct look *l, const struct gt_lane_step *s, uint64_t ns,
                      enum gt_round round)
{
    struct gt_lock_waits *lock = &l->survey->lock[s->lock];
    lock->threads += !lock->count || lock->thread != l->thread;
    lock->thread = l->thread;
    lock->ns += ns;
    lock->count += round != GT_GOES_ON;
    if (ns > lock->longest) {
        lock->longest = ns;
        lock->longest_at = s->from;
    }
    l->pool->lock_ns += ns;
}

static void note_rest(struct look *l, const struct gt_lane_step *s, uint64_t ns)
{
    l->pool->rest_ns += ns;
    l->pool->idle_ns += gt_graph_is_idle(l->sections->graph, s) ? ns : 0;
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

/* A producer waits until a consumer makes room in the queue. */
static void note_room(struct look *l, const struct gt_lane_step *s)
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
    const struct gt_section *section = &l->sections->at[part->section];
    uint64_t ns = part->to - part->from;
    bool locked = section->lock != GT_NOBODY, no_cpu = section->kind == GT_SCHED;
    bool held = locked || gt_lane_initialises(&l->sections->graph->lane[l->thread], part->from);
    if (locked) {
        l->survey->lock[section->lock].held_ns += ns;
        l->survey->lock[section->lock].no_cpu_ns += no_cpu ? ns : 0;
    }
    if (section->kind == GT_SYNC) /* to wait for others is no work */
        return;
    l->survey->work[l->thread] += no_cpu ? 0 : ns;
    l->survey->free[l->thread] += no_cpu || held ? 0 : ns;
    if (!no_cpu)
        *(held ? &l->pool->held_ns : &l->pool->free_ns) += ns;
}

/* Whether a creator waits until its thread has begun, as Python's do. */
static bool is_for_start(const struct look *l, const struct gt_lane_step *s)
{
    enum { SOON_NS = 10000000 };
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_lane *by = &graph->lane[s->by];
    return by->thread->maker == graph->lane[l->thread].thread && s->to < by->begin + SOON_NS;
}

static bool may_compute(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return gt_may_compute(s->kind, gt_leaf_of(graph->spot[s->spot].stack));
}

/* Whether the thread waits there by its events, where it may have computed for a moment. */
static bool is_wait(const struct gt_lane_step *s)
{
    return s->ended && s->kind > GT_SCHED && s->kind < GT_UNSEEN;
}

/* How much of `ns` these are; takes it from there. */
static double take(double *ns, double these)
{
    double taken = *ns < these ? *ns : these;
    *ns -= taken;
    return these > 0 ? taken / these : 0;
}

/*
 * Shares out the CPU time that the thread's account has beyond its running: to its calls; to its
 * running again, as some run-queue time is in its waits; and to its waits, which begin and end on
 * a CPU.
 */
static void share_cpu(struct look *l)
{
    enum { LEAST_PERCENT = 5 };
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_shares *its = &graph->lane[l->thread].thread->shares;
    double cpu = (double)its->cpu, ran = (double)its->told[GT_RUNNING], calls = 0, waits = 0;
    double left = cpu - l->parts.ran * ran, room = (1 - l->parts.unseen - l->parts.ran) * ran;
    l->in_calls = l->in_waits = 0;
    if (left <= 0 || left * 100 < cpu * LEAST_PERCENT)
        return;
    GT_EACH_STEP(s, graph, l->thread)
        *(may_compute(graph, s) ? &calls : &waits) += is_wait(s) ? (double)(s->to - s->from) : 0;
    l->in_calls = take(&left, calls);
    l->parts.ran += ran > 0 ? take(&left, room) * room / ran : 0;
    l->in_waits = take(&left, waits);
}

static void look_at(struct look *l, const struct gt_lane_step *s)
{
    struct gt_survey *v = l->survey;
    const struct gt_graph *graph = l->sections->graph;
    uint64_t from = s->from > v->from ? s->from : v->from, to = s->to < v->to ? s->to : v->to;
    uint64_t ns = to > from ? to - from : 0;
    enum gt_band band = band_of(graph, s);
    if (!ns)
        return;
    bool runs = band == GT_BAND_RUNNING;
    double computes = !is_wait(s) ? 0 : may_compute(graph, s) ? l->in_calls : l->in_waits;
    draw(l, band, runs ? l->parts.ran : 1 - computes, from, to);
    if (computes > 0)
        draw(l, GT_BAND_RUNNING, computes, from, to);
    if (runs && l->parts.unseen > 0)
        draw(l, GT_BAND_CALLS, l->parts.unseen, from, to);
    if (runs && l->parts.ran + l->parts.unseen < 1)
        draw(l, GT_BAND_NO_CPU, 1 - l->parts.ran - l->parts.unseen, from, to);
    if (s->by != GT_NOBODY && !gt_joins_is_join(graph, l->thread, s) && !is_for_start(l, s) &&
        !gt_graph_is_gil_wait(graph, s))
        v->posts[s->by]++;
    l->pool->life_ns += ns;
    enum gt_round round = gt_rounds_next(&l->rounds, graph, s);
    if (band == GT_BAND_LOCKS || band == GT_BAND_OTHER)
        note_place(l, s, ns, round);
    if (s->kind == GT_SYNC && band == GT_BAND_OTHER)
        l->woken_at = s->by == GT_NOBODY ? GT_NOBODY : s->spot;
    /* A waiter that times out to look again waits for its peers, too. */
    bool peers = s->by != GT_NOBODY ? v->pool_of[s->by] == v->pool_of[l->thread]
                                    : s->kind == GT_SYNC && s->ended && s->lock != GT_NOBODY;
    l->pool->peer_ns += peers ? ns : 0;
    l->pool->blind_ns += peers && s->owner == GT_NOBODY ? ns : 0;
    if (band == GT_BAND_LOCKS)
        note_lock(l, s, ns, round);
    else if (s->kind == GT_SYNC && !graph->spot[s->spot].busy)
        note_rest(l, s, ns);
    else if (s->kind == GT_SYNC)
        note_room(l, s);
    if (s->kind != GT_SYNC || graph->lane[l->thread].holds)
        gt_sections_split(l->sections, l->thread, s, from, to, add_part, l);
}

static void look_at_thread(struct look *l)
{
    const struct gt_survey *v = l->survey;
    l->rounds = (struct gt_rounds){.spot = GT_NOBODY};
    l->woken_at = GT_NOBODY;
    l->parts = gt_cpu_parts_of(l->sections->graph, l->thread);
    share_cpu(l);
    l->pool = &l->survey->pool[v->pool_of[l->thread]];
    GT_EACH_STEP_IN(s, l->sections->graph, l->thread, v->from, v->to)
        look_at(l, s);
}

/*
 * Threads of one pool have one routine, and names that differ in their numbers only. All threads of
 * a language's runtime may have one routine: "Thread-1 (consume)" and "Thread-2 (produce)".
 */
static uint64_t pool_key(const struct gt_thread_state *thread)
{
    uint64_t key = gt_hash_mix(0, (uintptr_t)thread->routine);
    for (const char *c = thread->name; *c; c++) {
        if (*c < '0' || *c > '9')
            key = gt_hash_mix(key, (uint8_t)*c);
    }
    return key | 1;
}

struct gt_name gt_name_of_pool(const struct gt_pool *pool)
{
    struct gt_name name = gt_name_of_function(*pool->routine ? pool->routine : pool->name);
    char *id = *pool->routine ? NULL : strchr(name.text, '.');
    size_t digits = id ? strspn(id + 1, "0123456789") : 0;
    if (digits && id[1 + digits] == '/') /* of a merge: "worker.4711/main" */
        memmove(id, id + 1 + digits, strlen(id + 1 + digits) + 1);
    return name;
}

static void find_pools(struct gt_survey *v, const struct gt_graph *graph)
{
    struct gt_memo by_key = {0};
    v->pool = gt_need(calloc(graph->lanes + 1, sizeof *v->pool));
    v->pool_of = gt_need(calloc(graph->lanes + 1, sizeof *v->pool_of));
    v->posts = gt_need(calloc(graph->lanes + 1, sizeof *v->posts));
    v->work = gt_need(calloc(graph->lanes + 1, sizeof *v->work));
    v->free = gt_need(calloc(graph->lanes + 1, sizeof *v->free));
    for (uint32_t i = 0; i < graph->lanes; i++) {
        const struct gt_lane *lane = &graph->lane[i];
        uint64_t *slot = gt_need(gt_memo_at(&by_key, pool_key(lane->thread)));
        if (!*slot) {
            v->pool[v->pools] = (struct gt_pool){.routine = lane->thread->routine,
                                                 .name = lane->thread->name,
                                                 .first = i,
                                                 .feeder = GT_NOBODY};
            *slot = ++v->pools;
        }
        v->pool_of[i] = (uint32_t)(*slot - 1);
        v->pool[*slot - 1].threads += lane->steps && lane->begin < v->to && lane->until > v->from;
    }
    gt_memo_free(&by_key);
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
    gt_memo_free(&l.times);
    gt_memo_free(&l.resting);
    gt_memo_free(&l.feeding);
}

uint32_t gt_survey_straggler(const struct gt_survey *v, size_t pool, uint32_t threads,
                             double *average)
{
    enum { UNEVEN_PERCENT = 150 };
    const struct gt_pool *its = &v->pool[pool];
    uint32_t found = GT_NOBODY;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < threads; i++) {
        if (v->pool_of[i] != pool)
            continue;
        sum += v->free[i];
        found = found == GT_NOBODY || v->free[i] > v->free[found] ? i : found;
    }
    *average = its->threads ? (double)sum / its->threads : 0;
    bool fed = its->fed > its->threads;
    bool uneven = found != GT_NOBODY && (double)v->free[found] * 100 > *average * UNEVEN_PERCENT;
    return its->threads > 1 && uneven && !fed ? found : GT_NOBODY;
}

/* Whether that is another thread, and none that goes on until another thread stops it. */
static bool is_other(const struct gt_graph *graph, uint32_t i, uint32_t thread)
{
    return i != thread && !graph->lane[i].stopped;
}

static bool has_others(const struct gt_graph *graph, uint32_t thread)
{
    bool found = false;
    for (uint32_t i = 0; i < graph->lanes && !found; i++)
        found = is_other(graph, i, thread);
    return found;
}

/* Whether another thread did something then: it began to wait, or ended. */
static bool others_acted(const struct gt_graph *graph, uint32_t thread, uint64_t from, uint64_t to)
{
    bool acted = false;
    for (uint32_t i = 0; i < graph->lanes && !acted; i++) {
        GT_CURSOR(c, graph, i);
        bool other = is_other(graph, i, thread);
        const struct gt_lane_step *s = other ? gt_cursor_seek(&c, to) : NULL;
        uint64_t until = graph->lane[i].until;
        acted = other && ((s && s->from >= from) || (until > from && until <= to));
    }
    return acted;
}

/*
 * A thread that sleeps again and again may work like that, or poll. What a poll asks for is there
 * in the end: another thread waits for the poller, or acted while the poller slept last. Of several
 * threads at one place, only what they ask for tells that.
 */
bool gt_survey_is_poll(const struct gt_survey *v, const struct gt_sections *sections,
                       uint32_t last_thread, uint32_t spot)
{
    enum { ROUNDS_LEAST = 30 }; /* a few are retries, unless it is known what they ask for */
    const struct gt_place_waits *p = &v->place[spot];
    if (p->asked.how == GT_ASKED_AGAIN || p->asked.how == GT_ASKED_TRIED ||
        p->asked.how == GT_ASKED_CHILD)
        return true;
    if (p->serves || p->woken * 10 > p->count || v->posts[p->thread] * 2 > p->rounds ||
        !has_others(sections->graph, p->thread) || sections->at[p->section].kind == GT_NETWORK)
        return false;
    if (p->asked.how != GT_ASKED_UNKNOWN)
        return true;
    return p->rounds >= ROUNDS_LEAST && p->threads == 1 &&
           (p->thread == last_thread || v->posts[p->thread] ||
            others_acted(sections->graph, p->thread, p->last_from, p->last_to));
}

/* Parallelism ---------------------------------------------------------------------------------- */

struct moment {
    uint64_t at;
    int by;
};

GT_ORDER(by_time, struct moment, GT_UP(at))

bool gt_survey_works(const struct gt_lane_step *s)
{
    return s->kind == GT_RUNNING || s->kind == GT_SYSCALL || s->kind == GT_UNSEEN ||
           (s->by == GT_NOBODY && (s->kind == GT_SLEEP || s->kind == GT_NETWORK));
}

/* A thread that waits for a lock or a CPU has something to do; one that waits for work has not. */
static bool has_work(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return s->kind != GT_SYNC || gt_graph_is_lock_wait(graph, s);
}

struct moments {
    struct moment *at;
    size_t n;
};

/* When the pool's threads begin and end to have work; with `only_at_work`: to work. Sorted. */
static struct moments find_moments(const struct gt_survey *v, const struct gt_graph *graph,
                                   size_t pool, uint64_t from, uint64_t to, bool only_at_work)
{
    struct moments m = {0};
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (v->pool_of[i] != pool)
            continue;
        GT_EACH_STEP_IN(s, graph, i, from, to) {
            if (!(only_at_work ? gt_survey_works(s) : has_work(graph, s)) || s->to <= from)
                continue;
            *GT_ADD(m.at, m.n) = (struct moment){s->from > from ? s->from : from, 1};
            *GT_ADD(m.at, m.n) = (struct moment){s->to < to ? s->to : to, -1};
        }
    }
    if (m.n)
        qsort(m.at, m.n, sizeof *m.at, by_time);
    return m;
}

double gt_survey_parallelism(const struct gt_survey *v, const struct gt_graph *graph, size_t pool,
                             uint64_t from, uint64_t to, double *part)
{
    struct moments m = find_moments(v, graph, pool, from, to, true);
    uint64_t any = 0, sum = 0;
    int now = 0;
    for (size_t i = 0; i + 1 < m.n; i++) {
        now += m.at[i].by;
        uint64_t ns = m.at[i + 1].at - m.at[i].at;
        any += now > 0 ? ns : 0;
        sum += ns * (uint64_t)(now > 0 ? now : 0);
    }
    free(m.at);
    *part = (double)any / (double)(to - from);
    return any ? (double)sum / (double)any : 0;
}

uint64_t gt_survey_full(const struct gt_survey *v, const struct gt_graph *graph, size_t pool,
                        uint64_t from, uint64_t to)
{
    struct moments m = find_moments(v, graph, pool, from, to, false);
    uint64_t full = 0;
    int now = 0;
    for (size_t i = 0; i + 1 < m.n; i++) {
        now += m.at[i].by;
        full += now >= (int)v->pool[pool].threads ? m.at[i + 1].at - m.at[i].at : 0;
    }
    free(m.at);
    return full;
}
