/* See tokens.h. */
#include "tokens.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"

#include <stdlib.h>

enum {
    READS_LEAST = 10,
    PAIRED_PERCENT = 75, /* of the writes: by a thread that had read a token, and had it still */
    TWICE_PERCENT = 10,  /* of the reads, at most: by a thread that has a token */
    LOOKS_MOST = 64,     /* calls that are looked at for the one that ended a wait */
};

/* The calls on one pipe, in the order of time. */
struct pipe {
    struct gt_graph *graph;
    const struct gt_byte *call;
    size_t n;
    uint32_t lock;
    uint64_t tokens;
    const struct gt_byte **took; /* by thread: how it got the token that it has; or NULL */
};

GT_ORDER(by_pipe, struct gt_byte, GT_UP(pipe) ?: GT_UP(to))

/* The token that the thread has had up to this call; NULL: none. */
static const struct gt_byte *next_call(struct pipe *p, const struct gt_byte *call)
{
    const struct gt_byte *had = p->took[call->thread];
    p->took[call->thread] = call->writes ? NULL : call;
    return had;
}

static void forget_tokens(struct pipe *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->took[p->call[i].thread] = NULL;
}

/* Whether threads take tokens from the pipe and give them back. Sets p->tokens. */
static bool has_tokens(struct pipe *p)
{
    uint64_t reads = 0, writes = 0, paired = 0, twice = 0;
    uint32_t first = GT_NOBODY;
    bool others = false;
    for (size_t i = 0; i < p->n; i++) {
        const struct gt_byte *call = &p->call[i];
        bool had = next_call(p, call);
        reads += !call->writes;
        writes += call->writes;
        paired += call->writes && had;
        twice += !call->writes && had;
        first = first == GT_NOBODY && !call->writes ? call->thread : first;
        others |= !call->writes && call->thread != first;
    }
    forget_tokens(p);
    p->tokens = writes - paired;
    return others && reads >= READS_LEAST && p->tokens && twice * 100 <= reads * TWICE_PERCENT &&
           paired * 100 >= writes * PAIRED_PERCENT;
}

/* When a token that the call wrote may have ended the wait; 0: not then. */
static uint64_t gave_at(const struct gt_byte *call, const struct gt_byte *read)
{
    uint64_t to = call->to < read->to ? call->to : read->to;
    bool during = call->to > read->from && call->from <= read->to;
    bool other = call->writes && call->thread != read->thread;
    return !during || !other ? 0 : call->from > read->from ? call->from : to;
}

/* The call of another thread that wrote a token last while this one waited; NULL: none did. */
static const struct gt_byte *giver_of(const struct pipe *p, size_t read)
{
    const struct gt_byte *it = &p->call[read], *found = NULL;
    size_t first = read > LOOKS_MOST ? read - LOOKS_MOST : 0;
    for (size_t i = first; i < p->n && i < read + LOOKS_MOST; i++) {
        const struct gt_byte *call = &p->call[i];
        if (gave_at(call, it) && (!found || call->from > found->from))
            found = call;
    }
    return found;
}

/* Removes what was inferred of the wait. */
static void drop_guess(struct gt_graph *graph, struct gt_lane *lane, const struct gt_byte *read)
{
    size_t n = 0;
    for (size_t i = 0; i < lane->handeds; i++) {
        const struct gt_handed *h = &lane->handed[i];
        bool its = h->at > read->from && h->at <= read->to && h->guessed;
        graph->inferred -= its;
        for (size_t k = 0; its && k < graph->guesses; k++)
            graph->guess[k].waits -= graph->guess[k].by == h->by &&
                                     graph->spot[graph->guess[k].spot].stack == read->stack;
        if (!its)
            lane->handed[n++] = *h;
    }
    lane->handeds = n;
}

static void tell_wait(struct pipe *p, size_t i)
{
    const struct gt_byte *read = &p->call[i], *giver = giver_of(p, i);
    struct gt_lane *lane = &p->graph->lane[read->thread];
    struct gt_handed *handed = giver ? gt_need(malloc(sizeof *handed)) : NULL;
    if (!giver)
        return;
    *handed = (struct gt_handed){
        .at = gave_at(giver, read), .by = giver->thread, .lock = p->lock, .slot = p->tokens > 1};
    drop_guess(p->graph, lane, read);
    gt_lane_hand(lane, handed, 1);
}

/* No call that reads a token is a wait for input, whether it had to wait or not. */
static void mark(struct gt_graph *graph, const struct gt_callers *reads)
{
    for (size_t i = 0; i < graph->spots; i++)
        graph->spot[i].takes |= !graph->spot[i].runs && graph->spot[i].stack == reads;
}

static void tell_hold(struct pipe *p, const struct gt_byte *took, uint64_t until)
{
    const struct gt_where *site = gt_site_of(took->stack);
    gt_graph_add_hold(p->graph, took->thread,
                      (struct gt_lock_hold){.from = took->to, .to = until, .lock = p->lock},
                      site ? site->func : "");
}

static void tell(struct pipe *p)
{
    p->lock = gt_graph_add_lock(p->graph, p->tokens == 1 ? "token" : GT_TOKENS,
                                p->tokens > 1 ? p->tokens : 0);
    const struct gt_callers *marked = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const struct gt_byte *call = &p->call[i], *had = next_call(p, call);
        if (!call->writes && call->stack != marked)
            mark(p->graph, marked = call->stack);
        if (!call->writes)
            tell_wait(p, i);
        else if (had && p->tokens == 1 && call->from > had->to)
            tell_hold(p, had, call->from);
    }
    forget_tokens(p);
}

void gt_tokens_find(struct gt_graph *graph)
{
    struct pipe p = {.graph = graph};
    if (!graph->bytes)
        return;
    p.took = gt_need(calloc(graph->lanes + 1, sizeof(void *)));
    qsort(graph->byte, graph->bytes, sizeof *graph->byte, by_pipe);
    for (size_t i = 0; i < graph->bytes; i += p.n) {
        p.call = &graph->byte[i];
        for (p.n = 1; i + p.n < graph->bytes && p.call[p.n].pipe == p.call->pipe;)
            p.n++;
        if (has_tokens(&p))
            tell(&p);
    }
    gt_graph_sort_holds(graph);
    free(p.took);
}
