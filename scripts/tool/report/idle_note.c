/* Notes each wait: see idle_private.h. */
#include "call_places.h"
#include "frame_code.h"
#include "idle.h"
#include "idle_private.h"
#include "roles.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* Within this time, several wake-ups by one thread are one broadcast. */
enum { TOGETHER_NS = 100000 };

struct gt_idle gt_idle;

static struct {
    struct gt_worker **worker; /* by thread number; or NULL */
    size_t workers;            /* room in `worker` */
    struct gt_memo visits;     /* by thread and purpose */
    struct gt_memo turns;      /* by thread and place */
} all;

void *gt_idle_item_of(struct gt_memo *memo, uint64_t key, size_t size)
{
    uint64_t *slot = gt_need(gt_memo_at(memo, key));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, size));
    return (void *)(uintptr_t)*slot;
}

struct gt_idle_verdict *gt_idle_verdict_of(uint64_t key)
{
    return gt_idle_item_of(&gt_idle.verdicts, key, sizeof(struct gt_idle_verdict));
}

static struct gt_turns *turns_of(uint64_t place, uint64_t g)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.turns, gt_hash_mix(place, g)));
    if (!*slot) {
        *slot = (uintptr_t)gt_need(calloc(1, sizeof(struct gt_turns)));
        gt_idle_verdict_of(place)->threads++;
    }
    return (void *)(uintptr_t)*slot;
}

static struct gt_visits *visits_of(const struct gt_span *span)
{
    struct gt_idle_keys key = gt_idle_keys_of(span->stack, span->kind);
    uint64_t g = span->thread->g;
    const char *call = gt_leaf_of(span->stack);
    struct gt_visits *v = gt_idle_item_of(&all.visits, gt_hash_mix(key.purpose, g), sizeof *v);
    if (!v->stack) {
        enum gt_way way = gt_idle_way_of(call);
        *v = (struct gt_visits){.next = gt_idle.first,
                                .stack = span->stack,
                                .thread = span->thread,
                                .kind = span->kind,
                                .way = way == GT_WAY_EVENTS && span->kind == GT_SLEEP ? GT_WAY_SLEEP
                                                                                      : way,
                                .joins = gt_role_of(call) == GT_ROLE_JOIN,
                                .reaps = gt_waits_for_child(call),
                                .first = span->from,
                                .turns = turns_of(key.place, g),
                                .key = key};
        gt_idle.first = v;
        gt_idle.first_seen |= g == 1;
        gt_idle.older |= g != 1 && !span->thread->maker && !gt_idle_is_main(span->stack);
        gt_idle.serves |= gt_is_for_clients(call);
        gt_idle.connects |= gt_is_connect(call);
    }
    return v;
}

/*
 * Whether the thread waits for a lock. A futex may be a mutex: the frames above it tell. Of a
 * semaphore its holds tell.
 */
static bool is_for_lock(const struct gt_span *span)
{
    const char *call = gt_leaf_of(span->stack);
    if (span->kind != GT_SYNC || gt_role_of(call) == GT_ROLE_JOIN)
        return false;
    return gt_idle_way_of(call) == GT_WAY_NEVER || gt_idle_kinds_on(span->stack) & GT_FRAME_BUSY ||
           gt_is_for_token(span);
}

struct gt_worker *gt_idle_worker_of(const struct gt_thread_state *t)
{
    all.worker = gt_need_zeros(all.worker, &all.workers, t->number, sizeof *all.worker);
    struct gt_worker **its = &all.worker[t->number];
    if (!*its)
        *its = gt_need(calloc(1, sizeof **its));
    return *its;
}

/*
 * Notes that the waker held a lock while it waited itself: it ended a wait for a lock that had
 * begun before its own last wait was over.
 */
static void note_end(const struct gt_span *span)
{
    struct gt_worker *by = gt_idle_worker_of(span->by);
    if (by->last && span->from < by->to && is_for_lock(span))
        by->last->awaited +=
            by->to - (span->from > by->wait.span.from ? span->from : by->wait.span.from);
}

/* The thread gave at `at` what it had, to one waiter or to all that waited. */
static void give(struct gt_idle_verdict *its, struct gt_turns *giver, uint64_t at)
{
    if (giver->gave && !giver->got && at < giver->gave + TOGETHER_NS)
        return;
    giver->had = giver->got;
    its->inside += giver->had ? at - giver->had : 0;
    giver->got = 0;
    giver->gave = at;
}

/*
 * Notes a wake-up. true: the waker is alike. Then it either gives back a slot or a turn, which it
 * has had since it waited here itself, or it hands over work. How long threads have a slot, and do
 * without, says more than names of functions.
 */
static bool note_peer(struct gt_visits *v, const struct gt_span *span)
{
    uint64_t at = span->from + span->ns, g = span->by->g;
    struct gt_turns *turns = v->turns,
                    *giver =
                        (void *)(uintptr_t)gt_memo_find(&all.turns, gt_hash_mix(v->key.place, g));
    bool alike = gt_idle_role_of(span->thread) == gt_idle_role_of(span->by) ||
                 (giver && gt_idle_role_of(span->thread) == span->thread->g &&
                  span->thread->routine == span->by->routine);
    if (alike) {
        struct gt_idle_verdict *its = gt_idle_verdict_of(v->key.place);
        if (giver)
            give(its, giver, at);
        v->peers++;
        its->peers++;
        its->waited += span->ns;
        its->named += span->waker && gt_idle_kinds_on(span->waker) & GT_FRAME_BUSY;
        its->given_back += span->waker && gt_is_taken_and_given(v->stack, span->waker);
        its->paired += giver && giver->had;
        its->outside += turns->gave && span->from > turns->gave ? span->from - turns->gave : 0;
    }
    turns->got = at;
    turns->gave = 0;
    return alike;
}

/*
 * Whether the wake-up was only for the mutex: the condition variable had been signalled before, and
 * another thread held the mutex.
 */
static bool is_handed(const struct gt_span *span)
{
    const char *how = span->waker ? gt_leaf_of(span->waker) : "";
    return gt_role_of(gt_leaf_of(span->stack)) == GT_ROLE_CONDITION && !strstr(how, "signal") &&
           !strstr(how, "broadcast");
}

/* Whether the span is certainly at the place. */
static bool is_at(const struct gt_visits *v, const struct gt_span *span)
{
    return v && v->stack == span->stack && v->kind == span->kind;
}

static uint64_t *ns_at(struct gt_memo *memo, uint64_t g)
{
    return gt_need(gt_memo_at(memo, g));
}

/* Notes that the thread waits for another thread's end, or for a child's. */
static void note_owed(const struct gt_visits *v, const struct gt_span *span)
{
    uint64_t joined = span->by ? span->by->g : span->ended ? 0 : span->thread->wanted.holder;
    if (v->reaps) {
        *ns_at(&gt_idle.reaping, span->thread->g) += span->ns;
        *ns_at(&gt_idle.reaping, 0) += span->ns;
    } else if (joined) {
        *ns_at(&gt_idle.joined, joined) += span->ns;
    }
}

/* Whether the span let clients come at once: the thread came to no rest. */
static bool is_short_for_clients(const struct gt_span *span)
{
    return span->kind == GT_SYSCALL && gt_is_for_clients(gt_leaf_of(span->stack));
}

/* Counts the sleep. If its wait is never idle, takes back the wait, and its earlier sleeps' time.
 */
static void count(struct gt_visits *v, struct gt_whole *wait, const struct gt_span *span)
{
    bool further = gt_whole_add(wait, span);
    if (!gt_is_never_idle(span)) {
        v->count++;
        v->waits += !further;
        v->ns += span->ns;
    } else if (further) {
        v->waits--;
        v->ns -= wait->span.ns - span->ns;
    }
}

void gt_idle_note(const struct gt_span *span)
{
    if (span->thread->g != 1 && (span->kind == GT_RUNNING || span->kind == GT_SYSCALL))
        gt_idle.worked += span->ns;
    if (gt_idle.off || span->kind == GT_RUNNING || span->kind == GT_SCHED || !span->stack ||
        !span->stack->n)
        return;
    if (is_short_for_clients(span)) {
        gt_idle.serves = true;
        return;
    }
    struct gt_worker *w = gt_idle_worker_of(span->thread);
    struct gt_visits *v = is_at(w->last, span)     ? w->last
                          : is_at(w->before, span) ? w->before
                                                   : visits_of(span);
    if (w->last != v || v->stack != span->stack)
        gt_idle_note_begin(span->thread, span->stack);
    if (span->waker)
        gt_idle_note_begin(span->by, span->waker);
    count(v, &w->wait, span);
    v->last = span->from;
    if (v->joins || v->reaps)
        note_owed(v, span);
    if (gt_is_for_token(span))
        v->way = GT_WAY_NEVER;
    if (span->by && v->way == GT_WAY_WORK && is_handed(span)) {
        v->handed++;
    } else if (span->by && v->way == GT_WAY_WORK) {
        bool answer = gt_idle_is_answer(span->thread, span->by), alike = note_peer(v, span);
        v->answers += alike ? span->by->maker == span->thread : answer;
    }
    v->ended += span->ended;
    v->woken += span->by != NULL;
    v->wanted = span->wanted ? span->wanted->lock->name : v->wanted;
    if (!w->last && span->thread->maker)
        gt_idle_worker_of(span->thread->maker)->made++;
    if (w->last && w->last != v) {
        uint32_t common = gt_idle_common_of(w->last->stack, v->stack);
        w->last->moves[common < GT_DEPTHS ? common : GT_DEPTHS - 1]++;
        w->before = w->last;
    }
    w->last = v;
    w->to = span->from + span->ns;
    if (span->by)
        note_end(span);
}
