/*
 * Why some pieces of a loop's work took much longer than others: the path of each slow piece leads
 * to a cause, and the page has one line for all pieces with one cause. See loops.h.
 */
#include "cpu_samples.h"
#include "loops.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOPS_MOST = 5,
    SLOW_MOST = 512,       /* pieces of a loop that are explained, from the slowest on */
    USUAL_MOST = 50,       /* pieces about the median that they are compared with */
    SLOW_NS = 1000000,     /* shorter pieces keep nobody waiting */
    SLOW_TIMES = 20,       /* times the median: a slow piece */
    TOLD_PERCENT = 10,     /* of the time of all slow pieces: the least cause */
    EXAMPLES_PERCENT = 90, /* of a cause's time: its pieces that count */
};

struct piece {
    uint64_t from, ns;
    uint32_t thread;
};

/* How many of a thread's samples in some time have a function on their stack. */
struct profile {
    const struct gt_graph *graph;
    const struct gt_lane *lane;
    size_t first, end; /* in lane->sample */
    uint64_t n;
    struct gt_memo counts, last;
};

struct look {
    struct gt_sections *sections;
    struct gt_loop *loop;
    uint64_t least, most; /* the lengths to collect */
    size_t enough;
    struct piece *piece;
    size_t n;
    struct profile all;
};

static bool collect(void *arg, uint32_t thread, uint64_t from, uint64_t to)
{
    struct look *l = arg;
    if (to - from < l->least || to - from > l->most)
        return true;
    *GT_ADD(l->piece, l->n) = (struct piece){from, to - from, thread};
    return l->n < l->enough;
}

/* Collects the loop's pieces of these lengths. */
static void find_pieces(struct look *l, struct gt_loops *loops, uint64_t least, uint64_t most,
                        size_t enough)
{
    const struct gt_graph *graph = l->sections->graph;
    l->least = least;
    l->most = most;
    l->enough = enough;
    l->n = 0;
    for (uint32_t i = 0; i < graph->lanes && l->n < enough; i++) {
        if (loops->of[i] != GT_NOBODY && &loops->at[loops->of[i]] == l->loop)
            gt_loops_each_piece(loops, graph, i, collect, l);
    }
}

GT_ORDER(by_length, struct piece, GT_DOWN(ns) ?: GT_UP(from))

/* Samples -------------------------------------------------------------------------------------- */

/* A slow piece. */
struct slow {
    struct piece piece;
    struct gt_blockage its;
    struct profile profile; /* if a thread ran for most of it */
    bool open;              /* it has samples, and no cause yet */
    size_t cause;           /* index in gt_loop.blockage; SIZE_MAX: it waited for input */
};

static const struct gt_callers *stack_at(const struct profile *p, size_t i)
{
    return p->graph->stack[p->lane->sample[i].stack];
}

static void add_samples(struct profile *p, const struct gt_graph *graph, uint32_t thread,
                        uint64_t from, uint64_t to)
{
    p->graph = graph;
    p->lane = &graph->lane[thread];
    p->first = gt_lane_sample_from(p->lane, from);
    p->end = gt_lane_sample_from(p->lane, to);
    for (size_t i = p->first; i < p->end; i++) {
        const struct gt_callers *stack = stack_at(p, i);
        p->n++;
        for (uint32_t k = 0; k < stack->n; k++) {
            uint64_t key = (uintptr_t)stack->frame[k].func;
            uint64_t *last = gt_need(gt_memo_at(&p->last, key));
            if (*last != p->n) /* else the function calls itself */
                ++*(uint64_t *)gt_need(gt_memo_at(&p->counts, key));
            *last = p->n;
        }
    }
}

/* Whether the function is on many of the samples. Some stacks are not known to their end. */
static bool is_on(const struct profile *p, const char *func)
{
    enum { PERCENT = 25 };
    uint64_t with = gt_memo_find(&p->counts, (uintptr_t)func);
    return with && with * 100 >= p->n * PERCENT;
}

/* What all samples of the loop's threads have on their stacks. */
static struct profile profile_loop(const struct look *l, const struct gt_loops *loops)
{
    struct profile all = {0};
    for (uint32_t i = 0; i < l->sections->graph->lanes; i++) {
        if (loops->of[i] != GT_NOBODY && &loops->at[loops->of[i]] == l->loop)
            add_samples(&all, l->sections->graph, i, loops->from, loops->to);
    }
    return all;
}

/* Whether the function is on a tenth of the samples outside the slow pieces, too: it is no cause.
 */
static bool is_usual(const struct look *l, const struct slow *slow, size_t n, const char *func)
{
    uint64_t with = gt_memo_find(&l->all.counts, (uintptr_t)func), of = l->all.n;
    for (size_t i = 0; i < n; i++) {
        const struct profile *p = &slow[i].profile;
        uint64_t its = gt_memo_find(&p->counts, (uintptr_t)func);
        with -= its < with ? its : with;
        of -= p->n < of ? p->n : of;
    }
    return with * 10 > of;
}

/* An address in code without names: it is a function only where it is called from. */
static bool is_address(const struct gt_callers *stack, uint32_t frame)
{
    const char *func = stack->frame[frame].func;
    return !frame && stack->n > 1 && (strstr(func, "+0x") || strncmp(func, "0x", 2) == 0);
}

/* How many of the slow pieces have the function on many of their samples. */
static size_t pieces_with(const struct slow *slow, size_t n, const char *func)
{
    size_t with = 0;
    for (size_t i = 0; i < n; i++)
        with += slow[i].open && is_on(&slow[i].profile, func);
    return with;
}

/*
 * The function that explains most pieces: the one farthest from the thread's start among the
 * functions in at least `least` pieces. False: usual pieces have all of them, too.
 */
static bool name_function(const struct look *l, struct slow *slow, size_t n, size_t least,
                          struct gt_blockage *out)
{
    struct gt_memo known = {0};
    uint32_t deepest = 0;
    for (size_t i = 0; i < n; i++) {
        const struct profile *p = &slow[i].profile;
        for (size_t k = p->first; slow[i].open && k < p->end; k++) {
            const struct gt_callers *stack = stack_at(p, k);
            for (uint32_t f = 0; f < stack->n && stack->n - f > deepest; f++) {
                const char *func = stack->frame[f].func;
                uint64_t *with = gt_need(gt_memo_at(&known, (uintptr_t)func));
                if (!*with)
                    *with = 1 + pieces_with(slow, n, func);
                if (*with <= least || is_address(stack, f) || is_usual(l, slow, n, func))
                    continue;
                deepest = stack->n - f;
                out->stack = stack;
                out->frame = f;
            }
        }
    }
    gt_memo_free(&known);
    return deepest;
}

/* Causes --------------------------------------------------------------------------------------- */

/*
 * The cause of the slow piece: what most of its path is, and no wait for input. False: most of it
 * is such a wait.
 */
static bool cause_of(struct look *l, const struct piece *piece, struct gt_blockage *out)
{
    struct gt_critical_path path = {0};
    uint64_t rest = 0;
    const struct gt_path_row *row = NULL;
    gt_path_add(&path, l->sections, piece->thread, piece->from, piece->from + piece->ns);
    gt_path_finish(&path);
    bool runs = path.by_kind[GT_RUNNING] * 2 > path.ns;
    for (size_t i = 0; i < path.n; i++) {
        const struct gt_section *s = &l->sections->at[path.row[i].section];
        rest += s->rest ? path.row[i].ns : 0;
        if (!row && !s->rest && (!runs || s->kind == GT_RUNNING))
            row = &path.row[i];
    }
    if (row)
        *out = (struct gt_blockage){.kind = l->sections->at[row->section].kind,
                                    .section = row->section,
                                    .thread = row->thread,
                                    .parts = row->count};
    gt_path_free(&path);
    return row && rest * 2 < piece->ns;
}

static void forget(struct profile *p)
{
    gt_memo_free(&p->counts);
    gt_memo_free(&p->last);
}

static void add(struct look *l, struct slow *slow, const struct gt_blockage *it, size_t *at)
{
    struct gt_loop *loop = l->loop;
    size_t i = *at;
    if (i == SIZE_MAX) {
        i = loop->blockages;
        *GT_ADD(loop->blockage, loop->blockages) = *it;
    }
    *at = slow->cause = i;
    slow->open = false;
    loop->blockage[i].ns += slow->piece.ns;
}

/* The pieces in which a thread ran, by the functions on their samples. */
static void add_sampled(struct look *l, struct slow *slow, size_t n)
{
    for (;;) {
        size_t left = 0, at = SIZE_MAX, first = SIZE_MAX;
        for (size_t i = 0; i < n; i++) {
            first = slow[i].open && first == SIZE_MAX ? i : first;
            left += slow[i].open;
        }
        if (!left)
            return;
        struct gt_blockage it = slow[first].its;
        bool named = name_function(l, slow, n, (left + 1) / 2, &it);
        for (size_t i = 0; i < n; i++) {
            if (slow[i].open && (!named || is_on(&slow[i].profile, gt_blockage_function(&it))))
                add(l, &slow[i], &it, &at);
        }
    }
}

/* Whichever place lost its CPU: the place is no cause. */
static bool is_same(const struct gt_blockage *a, const struct gt_blockage *b)
{
    return a->kind == b->kind && !a->stack && (a->kind == GT_SCHED || a->section == b->section);
}

static void find_causes(struct look *l, const struct gt_loops *loops, struct slow *slow, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct slow *it = &slow[i];
        const struct gt_loop *loop = l->loop;
        it->cause = SIZE_MAX;
        if (!cause_of(l, &it->piece, &it->its))
            continue;
        if (it->its.kind == GT_RUNNING)
            add_samples(&it->profile, l->sections->graph, it->its.thread, it->piece.from,
                        it->piece.from + it->piece.ns);
        it->open = it->profile.n;
        if (it->open)
            continue;
        size_t at = 0;
        while (at < loop->blockages && !is_same(&loop->blockage[at], &it->its))
            at++;
        at = at < loop->blockages ? at : SIZE_MAX;
        add(l, it, &it->its, &at);
    }
    l->all = profile_loop(l, loops);
    add_sampled(l, slow, n);
    forget(&l->all);
    for (size_t i = 0; i < n; i++) {
        forget(&slow[i].profile);
    }
}

GT_ORDER(by_time, struct gt_blockage, GT_DOWN(ns))

/* How long usual pieces are in that section. */
static uint64_t usual_of(const struct look *l, const struct gt_critical_path *usual, size_t n,
                         const struct gt_blockage *it)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < usual->n; i++) {
        const struct gt_section *s = &l->sections->at[usual->row[i].section];
        bool same = it->kind == GT_RUNNING || it->kind == GT_SCHED
                        ? s->kind == it->kind
                        : usual->row[i].section == it->section;
        ns += same ? usual->row[i].ns : 0;
    }
    return n ? ns / n : 0;
}

static void compare_with_usual(struct look *l, struct gt_loops *loops)
{
    struct gt_critical_path usual = {0};
    struct gt_loop *loop = l->loop;
    find_pieces(l, loops, loop->p50 - loop->p50 / 10, loop->p50 + loop->p50 / 10, USUAL_MOST);
    for (size_t i = 0; i < l->n; i++)
        gt_path_add(&usual, l->sections, l->piece[i].thread, l->piece[i].from,
                    l->piece[i].from + l->piece[i].ns);
    gt_path_finish(&usual);
    for (size_t i = 0; i < loop->blockages; i++)
        loop->blockage[i].usual_ns = usual_of(l, &usual, l->n, &loop->blockage[i]);
    gt_path_free(&usual);
}

/*
 * Explains the slow pieces. Of each cause, the slowest pieces that make up nearly all of its time
 * are counted: a cause of few long pieces is not hidden among many short ones.
 */
static void explain(struct look *l, struct gt_loops *loops)
{
    struct gt_loop *loop = l->loop;
    uint64_t least = loop->p50 * SLOW_TIMES > SLOW_NS ? loop->p50 * SLOW_TIMES : SLOW_NS;
    find_pieces(l, loops, least, UINT64_MAX, SIZE_MAX);
    if (!l->n)
        return;
    qsort(l->piece, l->n, sizeof *l->piece, by_length);
    l->n = l->n < SLOW_MOST ? l->n : SLOW_MOST;
    size_t n = l->n;
    struct slow *slow = gt_need(calloc(n, sizeof *slow));
    for (size_t i = 0; i < n; i++)
        slow[i].piece = l->piece[i];
    find_causes(l, loops, slow, n);
    uint64_t *told = gt_need(calloc(loop->blockages + 1, sizeof *told)), all = 0;
    for (size_t i = 0; i < n; i++) {
        if (slow[i].cause == SIZE_MAX)
            continue;
        struct gt_blockage *it = &loop->blockage[slow[i].cause];
        uint64_t ns = slow[i].piece.ns, *so_far = &told[slow[i].cause];
        all += ns;
        if (*so_far * 100 >= it->ns * EXAMPLES_PERCENT)
            continue;
        *so_far += ns;
        it->longest_at = it->count ? it->longest_at : slow[i].piece.from;
        it->longest = it->count ? it->longest : ns;
        it->shortest = ns;
        it->parts = it->count ? it->parts + slow[i].its.parts : slow[i].its.parts;
        it->count++;
    }
    if (loop->blockages)
        qsort(loop->blockage, loop->blockages, sizeof *loop->blockage, by_time);
    while (loop->blockages && loop->blockage[loop->blockages - 1].ns * 100 < all * TOLD_PERCENT)
        loop->blockages--;
    compare_with_usual(l, loops);
    free(told);
    free(slow);
}

void gt_loops_find_blockages(struct gt_loops *loops, struct gt_sections *sections)
{
    for (size_t i = 0; i < loops->n && i < LOOPS_MOST; i++) {
        struct look l = {.sections = sections, .loop = &loops->at[i]};
        explain(&l, loops);
        free(l.piece);
    }
}

/* Words ---------------------------------------------------------------------------------------- */

const char *gt_blockage_function(const struct gt_blockage *it)
{
    return it->stack ? it->stack->frame[it->frame].func : NULL;
}

/* The function that called it, and of code without names the next one that has a name; or NULL. */
static const char *caller_of(const struct gt_blockage *it)
{
    const char *func = gt_blockage_function(it);
    for (uint32_t k = it->frame + 1; k < it->stack->n; k++) {
        const char *caller = it->stack->frame[k].func;
        if (caller != func && !strstr(caller, "+0x") && strncmp(caller, "0x", 2) != 0)
            return caller;
    }
    return NULL;
}

const char *gt_blockage_name(const struct gt_sections *sections, const struct gt_blockage *it)
{
    static char text[4600];
    const struct gt_section *s = &sections->at[it->section];
    if (it->kind == GT_SCHED)
        snprintf(text, sizeof text, "without a CPU, mostly %.4000s",
                 gt_section_name(sections, it->section));
    else if (it->stack)
        snprintf(text, sizeof text, "on the CPU in %.1000s%s%.1000s",
                 gt_name_of_function(gt_blockage_function(it)).text, caller_of(it) ? " <- " : "",
                 caller_of(it) ? gt_name_of_function(caller_of(it)).text : "");
    else if (it->kind == GT_RUNNING)
        snprintf(text, sizeof text, "on the CPU in %.4000s%s%.200s%s%.200s",
                 gt_section_name(sections, it->section), s->from_what ? ", after " : "",
                 s->from_what ? s->from_what : "", s->to_what ? ", before " : "",
                 s->to_what ? s->to_what : "");
    else
        snprintf(text, sizeof text, "in %.4000s", gt_section_name(sections, it->section));
    return text;
}

/* "3 times, for 95.1ms to 102ms" */
static const char *how_often(const struct gt_blockage *it)
{
    static char text[160];
    int n = snprintf(text, sizeof text, it->count == 1 ? "once" : "%" PRIu64 " times", it->count);
    n += snprintf(text + n, sizeof text - (size_t)n, ", for %s", gt_duration(it->shortest));
    if (it->longest != it->shortest)
        snprintf(text + n, sizeof text - (size_t)n, " to %s", gt_duration(it->longest));
    return text;
}

/*
 * Whether slow pieces were in that place many times each: maybe they are several pieces between
 * which the thread never had to wait.
 */
static bool often_in(const struct gt_blockage *it)
{
    enum { OFTEN = 3 };
    return it->kind != GT_RUNNING && it->kind != GT_SCHED && it->kind != GT_SYNC &&
           it->parts >= it->count * OFTEN;
}

static char *sentence(const struct gt_sections *sections, const struct gt_loop *loop,
                      const struct gt_blockage *it)
{
    char *text = NULL, who[1200];
    const struct gt_graph *graph = sections->graph;
    char usual[200] = "", often[60] = "";
    bool other = it->thread != loop->thread && loop->threads == 1;
    snprintf(who, sizeof who,
             loop->threads == 1 ? "The event loop of %.1000s %s" : "Of the workers %.1000s, one %s",
             gt_loop_name(graph, loop).text,
             often_in(it)         ? "had no rest"
             : loop->threads == 1 ? "was blocked"
                                  : "was held up");
    if (it->kind != GT_RUNNING && it->kind != GT_SCHED && it->parts > it->count)
        snprintf(often, sizeof often, ", %.1f times in each",
                 (double)it->parts / (double)it->count);
    if (it->kind == GT_RUNNING && !it->stack)
        snprintf(usual, sizeof usual,
                 "\n  gotrace --cpu-hz=100 …, then gotrace why again: which function.");
    else if (!it->stack && it->usual_ns * 20 > loop->p50)
        snprintf(usual, sizeof usual, "\n  Pieces of work of usual length spend %s there.",
                 gt_duration(it->usual_ns));
    if (asprintf(&text, "%s %s (median %s):\n  %s%s%s%s.%s", who, how_often(it),
                 gt_duration(loop->p50), other ? gt_name_of_thread(graph, it->thread).text : "",
                 other ? " kept it waiting, " : "", gt_blockage_name(sections, it), often,
                 usual) < 0)
        text = NULL;
    return gt_need(text);
}

/* The longest row that is neither rest nor a lack of CPUs, if it is a good part; or NULL. */
static const struct gt_path_row *main_row(const struct gt_sections *sections,
                                          const struct gt_critical_path *path)
{
    enum { LEAST_PERCENT = 25 };
    for (size_t i = 0; i < path->n; i++) {
        const struct gt_section *s = &sections->at[path->row[i].section];
        if (!s->rest && s->kind != GT_SCHED)
            return path->row[i].ns * 100 >= path->ns * LEAST_PERCENT ? &path->row[i] : NULL;
    }
    return NULL;
}

/* What the loop does most, if it works a good part of the time. */
static void tell_busy(const struct gt_loops *loops, struct gt_findings *all,
                      const struct gt_sections *sections, const struct gt_critical_path *path)
{
    enum { LEAST_PERCENT = 25 };
    const struct gt_path_row *row = main_row(sections, path);
    uint32_t own = row ? loops->of[row->most] : GT_NOBODY;
    const struct gt_loop *loop = &loops->at[own == GT_NOBODY ? 0 : own];
    if (!row || loop->busy_ns * 100 < loop->life_ns * LEAST_PERCENT)
        return;
    char *text = NULL;
    double part = (double)row->ns / (double)path->ns;
    bool runs = sections->at[row->section].kind == GT_RUNNING;
    if (asprintf(&text,
                 "%s %s work%s %.0f %% of the time (median piece of work: %s),\n"
                 "  %.0f %% of that %s%s: %s, %s.\n"
                 "  If that took half as long, pieces of work would take %.0f %% less on average.",
                 loop->threads == 1 ? "The event loop of" : "The workers",
                 gt_loop_name(sections->graph, loop).text, loop->threads == 1 ? "s" : "",
                 100 * (double)loop->busy_ns / (double)loop->life_ns, gt_duration(loop->p50),
                 100 * part, runs ? "computing in " : "in ",
                 gt_section_name(sections, row->section), gt_duration(row->ns),
                 gt_count(row->count, "time"), 50 * part) < 0)
        text = NULL;
    gt_findings_insert(all, 0,
                       (struct gt_finding){.name = "busy_loop",
                                           .command = "top",
                                           .text = gt_need(text),
                                           .at = row->longest_at,
                                           .lock = GT_NOBODY});
}

/*
 * How many findings come before slow pieces of work: findings about locks that are held during half
 * of the path of all pieces. Slow pieces are next to nothing of that path. slow_ns: their length.
 */
static size_t first_of(const struct gt_findings *all, const struct gt_critical_path *path,
                       uint64_t slow_ns)
{
    enum { LEAST_PERCENT = 5 };
    size_t n = 0;
    while (path && slow_ns * 100 < path->ns * LEAST_PERCENT && n < all->n && all->at[n].part >= 0.5)
        n++;
    return n;
}

void gt_loops_tell(const struct gt_loops *loops, struct gt_findings *all,
                   const struct gt_sections *sections, const struct gt_critical_path *path)
{
    enum { TOLD_MOST = 4 };
    size_t told = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < loops->n; i++) {
        const struct gt_loop *loop = &loops->at[i];
        most = loop->blockages && loop->blockage->ns > most ? loop->blockage->ns : most;
    }
    size_t first = first_of(all, path, most);
    for (size_t i = 0; i < loops->n; i++) {
        for (size_t k = 0; k < loops->at[i].blockages && told < TOLD_MOST; k++) {
            const struct gt_blockage *it = &loops->at[i].blockage[k];
            if (it->ns * 100 < most * TOLD_PERCENT)
                continue;
            gt_findings_insert(all, first + told++,
                               (struct gt_finding){.name = "blocked_loop",
                                                   .lock = GT_NOBODY,
                                                   .command = it->stack ? "top --cpu" : "top",
                                                   .text = sentence(sections, &loops->at[i], it),
                                                   .at = it->longest_at});
        }
    }
    if (!told && path)
        tell_busy(loops, all, sections, path);
}
