/* See finishes.h. */
#include "finishes.h"

#include "joins.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/roles.h"

#include <stdlib.h>
#include <string.h>

/* Of the interval: as long as a thread of a server may need to end after the order to stop. */
enum { SOON_PART = 20 };

struct life {
    bool connects, accepts;
    bool waits;      /* until the recording ends */
    bool rests_last; /* its last wait was one for input or work */
    uint64_t rested; /* when the last such wait ended; 0: it read a peer's data, no order to stop */
};

struct waits {
    uint64_t joins, input, answers; /* ns; answers: input from threads of the program */
    uint64_t inputs, answered;      /* how many */
    bool last;                      /* the last input was an answer */
};

static struct life life_of(const struct gt_graph *graph, uint32_t thread)
{
    struct life life = {0};
    uint32_t last = GT_NOBODY;
    GT_EACH_STEP(s, graph, thread) {
        life.waits = gt_step_is_open(s);
        if (s->kind == GT_RUNNING || s->kind == GT_SCHED || gt_graph_is_gil_wait(graph, s))
            continue;
        const struct gt_spot *spot = &graph->spot[s->spot];
        const char *call = s->spot == last || spot->runs ? "" : gt_leaf_of(spot->stack);
        life.connects |= gt_is_connect(call);
        life.accepts |= gt_is_accept(call);
        life.rests_last =
            (s->kind == GT_NETWORK || s->kind == GT_SYNC) && gt_graph_is_idle(graph, s);
        if (life.rests_last)
            life.rested = gt_is_read(gt_leaf_of(spot->stack)) ? 0 : s->to;
        last = s->spot;
    }
    return life;
}

/* Whether the threads of that loop ended at about one time, as threads do that another thread
 * stops. */
static bool end_together(const struct gt_loops *loops, const struct gt_graph *graph, uint32_t loop)
{
    enum { PART = 100, LEAST_NS = 20000000 };
    uint64_t first = UINT64_MAX, last = 0, length = loops->to - loops->from;
    for (uint32_t i = 0; i < graph->lanes; i++) {
        if (loops->of[i] != loop)
            continue;
        uint64_t until = graph->lane[i].until;
        first = until < first ? until : first;
        last = until > last ? until : last;
    }
    return last - first <= (length / PART > LEAST_NS ? length / PART : LEAST_NS);
}

/*
 * Whether the thread has come to the end of its work. A thread that another thread stops was
 * waiting for input then, and so were others like it. A thread of a server may then still close
 * connections, and wait for others. No thread stops one that asks others.
 */
static bool is_done(const struct gt_loops *loops, const struct gt_graph *graph, uint32_t thread)
{
    const struct gt_lane *lane = &graph->lane[thread];
    uint32_t loop = loops->of[thread];
    if (lane->stopped)
        return false;
    if (loop == GT_NOBODY)
        return true;
    struct life life = life_of(graph, thread);
    uint64_t soon = life.rested + (loops->to - loops->from) / SOON_PART;
    bool closes = loops->serves && life.rested && soon >= lane->until;
    bool stopped = life.rests_last || closes;
    return (life.connects && !life.accepts) || !stopped || !end_together(loops, graph, loop);
}

static bool is_for_input(const char *call)
{
    return gt_is_read(call) || gt_is_poll(call);
}

/* How long the thread waited for the ends of such threads, and for input. */
static struct waits waits_of(const struct gt_loops *loops, const struct gt_graph *graph,
                             uint32_t thread)
{
    struct waits waits = {0};
    GT_EACH_STEP_IN(s, graph, thread, loops->from, loops->to) {
        uint64_t from = s->from > loops->from ? s->from : loops->from;
        uint64_t ns = (s->to < loops->to ? s->to : loops->to) - from;
        bool answer = s->kind == GT_NETWORK && s->by != GT_NOBODY;
        waits.answers += answer ? ns : 0;
        waits.answered += answer;
        if (s->kind == GT_NETWORK && is_for_input(gt_graph_call_of(graph, s))) {
            waits.inputs++;
            waits.last = answer;
        }
        if (s->kind == GT_NETWORK)
            waits.input += ns;
        else if (gt_joins_is_join(graph, thread, s) && is_done(loops, graph, s->by))
            waits.joins += ns;
    }
    return waits;
}

struct connections {
    struct gt_pair *at; /* key: when; value: whether the program accepted it */
    size_t n;
};

/* Adds those that the thread makes, from their begin, or those that it accepts, from their end. */
static void add_connections(struct connections *all, const struct gt_graph *graph, uint32_t thread,
                            bool accepted)
{
    GT_EACH_STEP(s, graph, thread) {
        const char *call = gt_graph_call_of(graph, s);
        if (!(accepted ? s->ended && gt_is_accept(call) : gt_is_connect(call)))
            continue;
        *GT_ADD(all->at, all->n) = (struct gt_pair){accepted ? s->to : s->from, accepted};
    }
}

/*
 * Whether the thread itself makes most connections that the program accepts, one after the other,
 * as in the test of a server.
 */
static bool asks_itself(const struct gt_graph *graph, uint32_t thread)
{
    struct connections all = {0};
    uint64_t accepted = 0, own = 0;
    bool made = false;
    add_connections(&all, graph, thread, false);
    for (uint32_t i = 0; i < graph->lanes && all.n; i++)
        add_connections(&all, graph, i, true);
    bool sorted = gt_sort(all.at, all.n);
    for (size_t i = 0; i < all.n && sorted; i++) {
        accepted += all.at[i].value;
        own += all.at[i].value && made;
        made = !all.at[i].value;
    }
    free(all.at);
    return own * 2 > accepted;
}

/*
 * Whether the thread asks the program's own server of datagrams, and next to nothing else, until
 * its end. The loop of a server may get input from its workers, too: but also from outside for each
 * of theirs, or at least the order to stop.
 */
static bool asks_without_connections(const struct waits *waits, uint64_t length)
{
    enum { MOST = 10 }; /* of its inputs all but this part */
    return waits->last && waits->answers * 2 > length &&
           waits->inputs <= waits->answered + waits->inputs / MOST;
}

bool gt_finishes(const struct gt_loops *loops, const struct gt_critical_path *path,
                 const struct gt_graph *graph, uint32_t thread)
{
    struct waits waits = waits_of(loops, graph, thread);
    uint64_t length = loops->to - loops->from;
    if (waits.joins * 2 > length)
        return true;
    struct life life = life_of(graph, thread);
    if (life.accepts || life.waits)
        return false;
    if (!life.connects)
        return loops->serves && !gt_graph_calls(graph, gt_is_accept) &&
               asks_without_connections(&waits, length);
    return (waits.input * 2 >= length && path->by_thread[thread] * 2 <= path->ns) ||
           (loops->serves && asks_itself(graph, thread));
}
