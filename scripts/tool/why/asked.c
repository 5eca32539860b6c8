/* See asked.h. */
#include "asked.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_LEAST = 10, /* of one place */
    SERIES_LEAST = 5,
    LOOKS_MOST = 200,     /* of either kind: a sample is enough */
    LANES_MOST = 200,     /* each look compares with all of them */
    STEPS_MOST = 32,      /* of one thread during one wait */
    FITS_PERCENT = 75,    /* of the looks of one kind, and */
    AWAITED_NS = 1000000, /* a shorter wait for a child may only ask whether it has ended */
    ELSE_PERCENT = 25,    /* of the other kind at most */
};

/* A wait, up to the time when the thread went on and looked. */
struct look {
    uint32_t thread;
    uint64_t from, to;
    uint64_t ns;          /* of the wait itself */
    uint32_t before;      /* a hash of what the thread did since its last such wait */
    uint32_t lock, owner; /* a lock that it failed to take, and its holder; or GT_NOBODY */
    bool child;           /* since its last such wait it made a child process, or waited for one */
    bool last;            /* the thread found what it asked for: it did something else then */
    uint32_t next;        /* the section of that, or of the next look; or GT_NOBODY */
};

struct looks {
    struct look *at;
    size_t n;
    size_t lasts;
    uint64_t awaited;      /* long waits of these threads for a child */
    uint64_t woken, posts; /* waits of these threads that others ended; of others that they did */
};

/* What other threads did that may be asked for. */
struct candidate {
    enum gt_asked_how how;
    uint32_t what;    /* a section or a lock */
    uint64_t hits[2]; /* failed looks; and last looks of a series */
    size_t seen;      /* 1 + the look that was counted last */
};

struct search {
    struct gt_survey *survey;
    struct gt_sections *sections;
    struct gt_cursor *cursor; /* of each thread */
    struct gt_memo index;     /* of candidates, + 1 */
    struct candidate *at;
    size_t n;
    uint32_t own; /* the section of the waits themselves */
};

static bool makes_child(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    static const char *const calls[] = {"fork", "vfork", "clone", "posix_spawn", NULL};
    const char *call = gt_leaf_of(graph->spot[s->spot].stack);
    return gt_begins_with(call + strspn(call, "_"), calls);
}

static bool waits_for_child(const struct gt_graph *graph, const struct gt_lane_step *s)
{
    return gt_waits_for_child(gt_leaf_of(graph->spot[s->spot].stack));
}

/* Adds the waits of the thread at that spot that no thread ended. */
static void add_looks(struct looks *all, const struct gt_survey *v, struct gt_sections *sections,
                      uint32_t thread, uint32_t spot)
{
    const struct gt_graph *graph = sections->graph;
    struct gt_rounds rounds = {.spot = GT_NOBODY};
    uint64_t between = 0;
    bool after = false;                /* the step before is such a wait */
    bool makes = false, waits = false; /* a child, since the last such wait */
    all->posts += v->posts[thread];
    GT_EACH_STEP_IN(s, graph, thread, v->from, v->to) {
        if (after && s->kind == GT_SCHED)
            all->at[all->n - 1].to = s->to;
        enum gt_round round = gt_rounds_next(&rounds, graph, s);
        all->woken += s->by != GT_NOBODY && !gt_graph_is_gil_wait(graph, s);
        after = s->spot == spot && s->kind != GT_SCHED && s->by == GT_NOBODY && s->ended;
        bool calls = s->kind != GT_RUNNING && s->kind != GT_SCHED;
        if (calls && all->n && all->at[all->n - 1].next == GT_NOBODY &&
            all->at[all->n - 1].thread == thread)
            all->at[all->n - 1].next = gt_sections_of(sections, thread, s);
        if (!after && calls && !gt_graph_is_lock_wait(graph, s))
            between = gt_hash_mix(between, s->spot + 1u);
        bool awaits = calls && waits_for_child(graph, s);
        makes |= calls && makes_child(graph, s);
        waits |= awaits;
        all->awaited += awaits && s->to - s->from >= AWAITED_NS;
        if (!after)
            continue;
        if (round != GT_ELSEWHERE && !makes && all->n && all->at[all->n - 1].thread == thread) {
            all->at[all->n - 1].last = false;
            all->lasts--;
        }
        *GT_ADD(all->at, all->n) = (struct look){
            thread,   s->from,        s->to, s->to - s->from, (uint32_t)between, s->lock,
            s->owner, makes || waits, true,  GT_NOBODY};
        between = 0;
        makes = waits = false;
        all->lasts++;
    }
}

static void note(struct search *s, size_t look, bool last, enum gt_asked_how how, uint32_t what)
{
    uint64_t *slot = gt_need(gt_memo_at(&s->index, (uint64_t)what << 2 | how));
    if (!*slot) {
        *GT_ADD(s->at, s->n) = (struct candidate){.how = how, .what = what};
        *slot = s->n;
    }
    struct candidate *its = &s->at[*slot - 1];
    its->hits[last] += its->seen != look + 1;
    its->seen = look + 1;
}

/* Notes the locks that the other thread had when this one looked. */
static void note_holds(struct search *s, size_t number, const struct look *look, uint32_t other)
{
    struct gt_hold_walk walk = {0};
    const struct gt_lane *lane = &s->sections->graph->lane[other];
    for (const struct gt_lock_hold *h; (h = gt_lane_next_hold(lane, look->to, &walk));) {
        if (h->from <= look->to && !h->gil)
            note(s, number, look->last, GT_ASKED_HELD, h->lock);
    }
}

/*
 * Notes what the other thread did during the wait, and where it was at the end of it. What the
 * other ended is no answer if this one does it itself next: both do it now and then, as when a pipe
 * is full.
 */
static void note_other(struct search *s, size_t number, const struct look *look, uint32_t other)
{
    struct gt_cursor *c = &s->cursor[other];
    uint64_t until = s->sections->graph->lane[other].until;
    uint64_t at = look->to < until ? look->to : until;
    const struct gt_lane_step *step = at > look->from ? gt_cursor_seek(c, at) : NULL;
    for (int i = 0; step && i < STEPS_MOST && step->to > look->from; i++) {
        bool there = step->to > look->to, calls = step->kind != GT_RUNNING;
        uint32_t section = gt_sections_of(s->sections, other, step);
        bool answers = there || (calls && section != look->next);
        if (gt_survey_works(step) && answers && section != s->own)
            note(s, number, look->last, there ? GT_ASKED_THERE : GT_ASKED_ENDED, section);
        step = gt_cursor_seek(c, step->from);
    }
}

/* How well the candidate tells the looks of one kind from the others; 0: not well enough. */
static double fit_of(const struct candidate *it, const uint64_t looks[2])
{
    bool last = it->how == GT_ASKED_ENDED;
    double fits = (double)it->hits[last] / (double)looks[last];
    double other = (double)it->hits[!last] / (double)looks[!last];
    return fits * 100 >= FITS_PERCENT && other * 100 <= ELSE_PERCENT ? fits - other : 0;
}

static struct gt_asked find_best(const struct search *s, const uint64_t looks[2])
{
    const struct candidate *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        double fit = fit_of(&s->at[i], looks);
        if (fit > 0 && (!best || fit > fit_of(best, looks)))
            best = &s->at[i];
    }
    if (!best)
        return (struct gt_asked){0};
    bool last = best->how == GT_ASKED_ENDED;
    return (struct gt_asked){best->how, best->what, GT_NOBODY, best->hits[last], looks[last]};
}

static struct gt_asked find_asked(struct search *s, const struct looks *all)
{
    const struct gt_graph *graph = s->sections->graph;
    uint64_t number[2] = {0}, taken[2] = {0};
    uint64_t every[2] = {(all->n - all->lasts) / LOOKS_MOST + 1, all->lasts / LOOKS_MOST + 1};
    for (size_t i = 0; i < all->n; i++) {
        const struct look *look = &all->at[i];
        if (number[look->last]++ % every[look->last])
            continue;
        taken[look->last]++;
        for (uint32_t k = 0; k < graph->lanes; k++) {
            if (k == look->thread)
                continue;
            note_other(s, i, look, k);
            note_holds(s, i, look, k);
        }
    }
    return find_best(s, taken);
}

/* What more than half of the looks are for, if they agree so far: see find_tried. */
struct majority {
    uint32_t of;
    uint64_t ahead;
};

static void vote(struct majority *m, uint32_t of)
{
    m->of = m->ahead ? m->of : of;
    m->ahead += m->of == of ? 1 : -UINT64_C(1);
}

/* Whether one wait is as long as the other, but for what a timer and the kernel add. */
static bool is_as_long(uint64_t ns, uint64_t other)
{
    enum { OFF_PERCENT = 20, OFF_NS = 300000 };
    uint64_t off = ns > other ? ns - other : other - ns;
    return off * 100 <= other * OFF_PERCENT || off < OFF_NS;
}

/*
 * Whether the threads back off: a wait is longer than the thread's last one, but no more than three
 * times, or as long, or the shortest of all. What a thread does between does not matter: it may
 * have to ask another thread. But before the shortest wait it has done what it tried: sleeps that
 * grow all the same stand for work. SQLite waits 1, 2, 5, 10, 15, 20 and 25 ms, Python 1, 2, 4, 8,
 * 16, 32 and 50.
 */
static bool backs_off(const struct looks *all, uint64_t least)
{
    enum { GROWN_LEAST = 5, IN_A_ROW = 3, OTHER_PERCENT = 10 };
    uint64_t grown = 0, in_a_row = 0, most = 0, other = 0, firsts = 0, done = 0;
    struct majority usual = {GT_NOBODY, 0};
    for (size_t i = 1; i < all->n; i++) {
        uint64_t ns = all->at[i].ns, last = all->at[i - 1].ns;
        bool first = all->at[i].thread != all->at[i - 1].thread || is_as_long(ns, least);
        bool same = is_as_long(ns, last), grows = !first && ns * 6 > last * 7 && ns < last * 3;
        in_a_row = grows ? in_a_row + 1 : 0;
        most = in_a_row > most ? in_a_row : most;
        grown += grows;
        if (grows)
            vote(&usual, all->at[i].before);
        other += !first && !same && !grows;
    }
    for (size_t i = 1; i < all->n; i++) {
        bool first = is_as_long(all->at[i].ns, least) && !is_as_long(all->at[i - 1].ns, least);
        firsts += first;
        done += first && all->at[i].before != usual.of;
    }
    return grown >= GROWN_LEAST && most >= IN_A_ROW && other * 100 <= all->n * OTHER_PERCENT &&
           done * 100 >= firsts * FITS_PERCENT;
}

/*
 * Whether the waits are equal, and before each round of them the thread made a child process, or
 * waited for one: then it may ask whether that has ended. The calls that ask are too short to be
 * recorded. A thread that waits for its children asks nothing.
 */
static struct gt_asked find_child(const struct looks *all)
{
    uint64_t rounds = 0, hits = 0, alike = 0;
    for (size_t i = 0; i < all->n; i++) {
        bool first = i == 0 || all->at[i - 1].last;
        rounds += first;
        hits += first && all->at[i].child;
        alike += i == 0 || is_as_long(all->at[i].ns, all->at[i - 1].ns);
    }
    if (rounds < SERIES_LEAST || all->n - rounds < ROUNDS_LEAST || all->awaited * 2 > rounds ||
        hits * 100 < rounds * FITS_PERCENT || alike * 100 < all->n * FITS_PERCENT)
        return (struct gt_asked){0};
    return (struct gt_asked){GT_ASKED_CHILD, GT_NOBODY, GT_NOBODY, hits, rounds};
}

/* Whether the thread had failed to take a lock before most waits, and which thread held the lock.
 */
static struct gt_asked find_tried(const struct looks *all)
{
    struct majority lock = {GT_NOBODY, 0}, by = {GT_NOBODY, 0};
    uint64_t hits = 0, its = 0;
    for (size_t i = 0; i < all->n; i++)
        vote(&lock, all->at[i].lock);
    for (size_t i = 0; i < all->n; i++) {
        hits += all->at[i].lock == lock.of;
        if (all->at[i].lock == lock.of)
            vote(&by, all->at[i].owner);
    }
    for (size_t i = 0; i < all->n; i++)
        its += all->at[i].lock == lock.of && all->at[i].owner == by.of;
    if (lock.of == GT_NOBODY || hits * 100 < all->n * FITS_PERCENT)
        return (struct gt_asked){0};
    return (struct gt_asked){GT_ASKED_TRIED, lock.of, its * 2 > hits ? by.of : GT_NOBODY, hits,
                             all->n};
}

static struct gt_asked asked_at(struct gt_survey *v, struct gt_sections *sections, uint32_t spot)
{
    struct search s = {.survey = v, .sections = sections, .own = v->place[spot].section};
    struct gt_asked found = {0};
    struct looks looks = {0};
    for (size_t i = 0; i < v->waiters; i++) {
        if (v->waiter[i].spot == spot)
            add_looks(&looks, v, sections, v->waiter[i].thread, spot);
    }
    if (sections->at[s.own].kind == GT_SLEEP)
        found = find_tried(&looks);
    /* Threads that tell each other when to go on need not ask: they work in these waits. */
    if (found.how == GT_ASKED_UNKNOWN && looks.lasts >= SERIES_LEAST &&
        looks.n - looks.lasts >= SERIES_LEAST && (looks.woken + looks.posts) * 2 <= looks.lasts) {
        s.cursor = gt_cursors_open(sections->graph);
        found = find_asked(&s, &looks);
        gt_cursors_close(s.cursor);
    }
    if (found.how == GT_ASKED_UNKNOWN && backs_off(&looks, sections->graph->spot[spot].alone_least))
        found.how = GT_ASKED_AGAIN;
    if (found.how == GT_ASKED_UNKNOWN && sections->at[s.own].kind == GT_SLEEP)
        found = find_child(&looks);
    v->place[spot].serves = looks.woken * 2 > looks.lasts && looks.posts * 2 > looks.lasts;
    gt_memo_free(&s.index);
    free(s.at);
    free(looks.at);
    return found;
}

void gt_asked_find(struct gt_survey *v, struct gt_sections *sections)
{
    const struct gt_graph *graph = sections->graph;
    for (uint32_t i = 0; i < graph->spots && graph->lanes <= LANES_MOST; i++) {
        const struct gt_place_waits *p = &v->place[i];
        enum gt_kind kind = p->count ? sections->at[p->section].kind : GT_NETWORK;
        if (kind != GT_NETWORK && (kind == GT_SLEEP ? p->count : p->rounds) >= ROUNDS_LEAST)
            v->place[i].asked = asked_at(v, sections, i);
    }
}
