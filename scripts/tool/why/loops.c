/* See loops.h. */
#include "loops.h"

#include "encoder/base/hash.h"
#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_PIECES = 10, /* of a loop: fewer are no habit, */
    FEW_PART = 10,     /* unless they are that part of the work of a program with clients */
    PLACES_MOST = 8,   /* different places of one thread's rest */
    TAIL_PART = 20,    /* of a thread's life, and of the interval: to be told to stop */
};

/* Finding -------------------------------------------------------------------------------------- */

/* The piece of work that a thread has begun. */
struct piece {
    uint64_t since; /* end of the last rest; begin of a thread made for input; 0: there was none */
    bool given;     /* by another thread, as workers get it */
};

struct look {
    struct gt_loops *loops;
    struct gt_sections *sections;
    struct gt_memo by_key;
    struct gt_loop its; /* what the thread under examination adds to its loop */
    struct {
        uint32_t section;
        uint64_t ns;
    } place[PLACES_MOST];
    size_t places;
    uint64_t last_key; /* of the spot and kind that last_section belongs to */
    uint32_t last_section;
    struct piece piece;
};

/* Whether the thread rests in that step: it waits for input or work. */
static bool is_rest(struct gt_loops *loops, const struct gt_graph *graph,
                    const struct gt_lane_step *s)
{
    uint8_t bit = (uint8_t)(1 << s->kind);
    bool waits = s->kind == GT_NETWORK || s->kind == GT_SYNC;
    if (waits && !(loops->known[s->spot] & bit)) {
        loops->known[s->spot] |= bit;
        loops->rests[s->spot] |= gt_graph_is_idle(graph, s) ? bit : 0;
    }
    return loops->rests[s->spot] & bit;
}

static void note_place(struct look *l, const struct gt_lane_step *s, uint64_t ns)
{
    uint64_t key = (uint64_t)s->spot << 3 | s->kind;
    if (key != l->last_key) {
        l->last_section = gt_sections_of(l->sections, l->its.thread, s);
        l->last_key = key;
    }
    uint32_t section = l->last_section;
    size_t i = 0;
    while (i < l->places && l->place[i].section != section)
        i++;
    if (i == PLACES_MOST)
        return;
    if (i == l->places) {
        l->place[l->places].section = section;
        l->place[l->places++].ns = 0;
    }
    l->place[i].ns += ns;
    if (l->place[i].ns > l->its.rest_ns) {
        l->its.rest = section;
        l->its.spot = s->spot;
        l->its.rest_ns = l->place[i].ns;
    }
}

static void note_piece(struct look *l, uint64_t from, uint64_t to)
{
    struct gt_loop *its = &l->its;
    uint64_t ns = to - from;
    gt_lengths_add(&its->lengths, ns);
    its->pieces++;
    its->busy_ns += ns;
    if (ns > its->longest) {
        its->longest = ns;
        its->longest_at = from;
    }
}

static struct piece piece_after(const struct gt_lane_step *rest)
{
    return (struct piece){rest->to, rest->kind == GT_SYNC};
}

static void look_at(struct look *l, const struct gt_lane_step *s)
{
    uint64_t from = s->from > l->loops->from ? s->from : l->loops->from;
    uint64_t to = s->to < l->loops->to ? s->to : l->loops->to;
    if (!is_rest(l->loops, l->sections->graph, s))
        return;
    if (l->piece.since && s->from > l->piece.since && s->from <= l->loops->to)
        note_piece(l, l->piece.since, s->from);
    gt_lengths_add(&l->its.rest_lengths, to - from);
    l->its.rests++;
    l->its.alone += s->kind == GT_SYNC && s->by == GT_NOBODY;
    note_place(l, s, to - from);
    l->piece = piece_after(s);
}

/* The end of the first wait for input, if the program has clients. */
static uint64_t first_input(struct gt_loops *loops, const struct gt_graph *graph)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < graph->lanes && loops->serves; i++) {
        GT_CURSOR(c, graph, i);
        const struct gt_lane_step *s = gt_cursor_from(&c, loops->from);
        while (s && s->to < first && !(s->kind == GT_NETWORK && is_rest(loops, graph, s)))
            s = gt_cursor_next(&c);
        first = s && s->to < first ? s->to : first;
    }
    return first;
}

/* Whether the thread was made for what came: its work begins with its life. */
static bool is_for_input(const struct gt_loops *loops, const struct gt_graph *graph,
                         uint32_t thread)
{
    return graph->lane[thread].begin > loops->input;
}

static struct piece first_piece(const struct gt_loops *loops, const struct gt_graph *graph,
                                uint32_t thread)
{
    bool begins = is_for_input(loops, graph, thread);
    return (struct piece){begins ? graph->lane[thread].begin : 0, true};
}

/* Whether a thread that was there before the first input ended the wait. */
static bool is_told(const struct gt_loops *loops, const struct gt_graph *graph,
                    const struct gt_lane_step *s)
{
    return s->kind == GT_SYNC && s->by != GT_NOBODY && !is_for_input(loops, graph, s->by);
}

/*
 * When a piece of work ended after which the thread did not rest again. Threads of a pool that ends
 * with the program wait at last for the order to end. Not after the piece's begin: there is no such
 * piece, or the thread only ended then.
 */
static uint64_t last_piece_until(const struct gt_loops *loops, const struct gt_graph *graph,
                                 uint32_t thread, struct piece piece)
{
    const struct gt_lane *lane = &graph->lane[thread];
    GT_CURSOR(c, graph, thread);
    uint64_t until = lane->until < loops->to ? lane->until : loops->to;
    uint64_t tail = (until - lane->begin) / TAIL_PART;
    bool at_end = until + (loops->to - loops->from) / TAIL_PART >= loops->to;
    if (!piece.given || !piece.since || loops->input == UINT64_MAX || until < piece.since + tail)
        return 0;
    const struct gt_lane_step *s = at_end ? gt_cursor_seek(&c, until) : NULL;
    while (s && s->to + tail >= until && !is_told(loops, graph, s))
        s = gt_cursor_seek(&c, s->from);
    return s && s->to + tail >= until ? s->from : until;
}

/* Adds what the thread did to the loop of all threads alike. */
static void add_thread(struct look *l)
{
    struct gt_loops *loops = l->loops;
    const struct gt_loop *its = &l->its;
    const char *routine = l->sections->graph->lane[its->thread].thread->routine;
    uint64_t *slot =
        gt_need(gt_memo_at(&l->by_key, gt_hash_mix((uintptr_t)routine, its->rest + 1u) | 1));
    if (!*slot) {
        *GT_ADD(loops->at, loops->n) =
            (struct gt_loop){.thread = its->thread, .rest = its->rest, .spot = its->spot};
        *slot = loops->n;
    }
    struct gt_loop *loop = &loops->at[*slot - 1];
    loops->of[its->thread] = (uint32_t)(*slot - 1);
    loop->threads++;
    loop->rests += its->rests;
    loop->alone += its->alone;
    loop->rest_ns += its->rest_ns;
    loop->pieces += its->pieces;
    loop->busy_ns += its->busy_ns;
    loop->life_ns += its->life_ns;
    gt_lengths_join(&loop->lengths, &its->lengths);
    gt_lengths_join(&loop->rest_lengths, &its->rest_lengths);
    if (its->longest > loop->longest) {
        loop->longest = its->longest;
        loop->longest_at = its->longest_at;
    }
}

static void free_lengths(struct gt_loop *loop)
{
    free(loop->lengths.at);
    free(loop->rest_lengths.at);
    loop->lengths.at = loop->rest_lengths.at = NULL;
}

static void look_at_thread(struct look *l, uint32_t thread)
{
    const struct gt_graph *graph = l->sections->graph;
    const struct gt_lane *lane = &graph->lane[thread];
    struct gt_loops *loops = l->loops;
    if (lane->begin >= loops->to || lane->until <= loops->from)
        return;
    l->its = (struct gt_loop){.thread = thread};
    l->its.life_ns = (lane->until < loops->to ? lane->until : loops->to) -
                     (lane->begin > loops->from ? lane->begin : loops->from);
    l->places = 0;
    l->last_key = UINT64_MAX;
    l->piece = first_piece(loops, graph, thread);
    GT_EACH_STEP_IN(s, graph, thread, loops->from, loops->to)
        look_at(l, s);
    l->its.rest = l->its.rests ? l->its.rest : l->sections->unknown;
    uint64_t until = last_piece_until(loops, graph, thread, l->piece);
    if (until > l->piece.since)
        note_piece(l, l->piece.since, until);
    if (l->its.pieces)
        add_thread(l);
    free_lengths(&l->its);
}

GT_ORDER(by_work, struct gt_loop, GT_DOWN(busy_ns) ?: GT_UP(thread))

/* Whether the loop's waits for work mostly time out: it gets none. */
static bool is_timer(const struct gt_sections *sections, const struct gt_loop *loop)
{
    return sections->at[loop->rest].kind == GT_SYNC && loop->alone * 2 > loop->rests;
}

/* Drops threads without the habit, and sorts the others. */
static void choose(struct gt_loops *loops, const struct gt_sections *sections, size_t threads)
{
    uint32_t *index = gt_need(malloc((loops->n + 1) * sizeof *index));
    uint64_t work = 0;
    size_t n = 0;
    for (size_t i = 0; i < loops->n; i++)
        work += loops->at[i].busy_ns;
    for (size_t i = 0; i < loops->n; i++) {
        struct gt_loop *it = &loops->at[i];
        it->p50 = gt_lengths_percentile(&it->lengths, 500);
        it->p95 = gt_lengths_percentile(&it->lengths, 950);
        it->p99 = gt_lengths_percentile(&it->lengths, 990);
        it->rest_p50 = gt_lengths_percentile(&it->rest_lengths, 500);
        free_lengths(it);
        it->index = (uint32_t)i;
        bool counts =
            it->pieces >= LEAST_PIECES || (loops->serves && it->busy_ns * FEW_PART >= work);
        if (counts && !is_timer(sections, it))
            loops->at[n++] = *it;
    }
    if (n)
        qsort(loops->at, n, sizeof *loops->at, by_work);
    memset(index, 0xff, loops->n * sizeof *index);
    for (size_t i = 0; i < n; i++)
        index[loops->at[i].index] = (uint32_t)i;
    for (size_t i = 0; i < threads; i++)
        loops->of[i] = loops->of[i] == GT_NOBODY ? GT_NOBODY : index[loops->of[i]];
    loops->n = n;
    free(index);
}

static void find_connections(struct gt_loops *loops, const struct gt_graph *graph)
{
    loops->serves = gt_graph_calls(graph, gt_is_for_clients);
    loops->connects = !loops->serves && gt_graph_calls(graph, gt_is_connect);
}

void gt_loops_find(struct gt_loops *loops, struct gt_sections *sections, uint64_t from, uint64_t to)
{
    const struct gt_graph *graph = sections->graph;
    *loops = (struct gt_loops){.from = from, .to = to};
    loops->of = gt_need(malloc((graph->lanes + 1) * sizeof *loops->of));
    memset(loops->of, 0xff, graph->lanes * sizeof *loops->of);
    loops->known = gt_need(calloc(graph->spots + 1, 1));
    loops->rests = gt_need(calloc(graph->spots + 1, 1));
    find_connections(loops, graph);
    loops->input = first_input(loops, graph);
    struct look l = {.loops = loops, .sections = sections};
    for (uint32_t i = 0; i < graph->lanes; i++)
        look_at_thread(&l, i);
    choose(loops, sections, graph->lanes);
    gt_memo_free(&l.by_key);
}

struct gt_name gt_loop_name(const struct gt_graph *graph, const struct gt_loop *loop)
{
    struct gt_name own = gt_name_of_thread(graph, loop->thread), name = own;
    const char *routine = graph->lane[loop->thread].thread->routine;
    int process = (int)strcspn(own.text, ".");
    if (loop->threads == 1)
        return own;
    snprintf(name.text, sizeof name.text, "%" PRIu32 " x %.*s%.900s", loop->threads,
             strchr(own.text, '/') ? process + 1 : 0, own.text,
             gt_name_of_function(*routine ? routine : own.text).text);
    if (strchr(own.text, '/'))
        name.text[strcspn(name.text, ".")] = '/';
    return name;
}

void gt_loops_each_piece(struct gt_loops *loops, const struct gt_graph *graph, uint32_t thread,
                         gt_piece_fn *fn, void *arg)
{
    GT_CURSOR(c, graph, thread);
    struct piece piece = first_piece(loops, graph, thread);
    for (const struct gt_lane_step *s = gt_cursor_from(&c, loops->from); s && s->from <= loops->to;
         s = gt_cursor_next(&c)) {
        if (!is_rest(loops, graph, s))
            continue;
        if (piece.since && s->from > piece.since && !fn(arg, thread, piece.since, s->from))
            return;
        piece = piece_after(s);
    }
    uint64_t until = last_piece_until(loops, graph, thread, piece);
    if (until > piece.since)
        fn(arg, thread, piece.since, until);
}
