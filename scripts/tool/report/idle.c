/* See idle.h. */
#include "idle.h"

#include "frame_code.h"
#include "call_places.h"
#include "roles.h"
#include "scripts/tool/tool.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The way in which a call waits. LISTEN: for events from outside, however rare they are. */
enum way { NEVER, WORK, EVENTS, LISTEN, SLEEP, PARKED };

enum {
    TIMES = 3,        /* visits that make a place one that threads return to */
    BELOW_LOOP = 3,   /* functions between the loop and the call: see is_shallow */
    BELOW_EVENTS = 6, /* BELOW_LOOP for calls that belong to a loop */
    DEPTHS = 16,
    PAIRED_PERCENT = 75, /* of slots given back: by a thread that waited for one before */
    LEAST_OUTSIDE_PART =
        20,                 /* most time with a slot per time without: else workers pass work on; */
    NAMED_OUTSIDE_PART = 4, /* the same limit if functions are named as a producer's */
    TOGETHER_NS = 100000,   /* within this time, several wake-ups by one thread are one broadcast */
    LIFE_PERCENT = 95,      /* a thread that rests so much of its life had nothing else to do */
    OWED_PERCENT = 10       /* unless another thread waits for its end so much of its life */
};

/* The visits of one thread to one place. */
struct visits {
    struct visits *next;                /* in `all.first` */
    const struct gt_callers *stack;     /* the first stack */
    uint64_t count, ns, answers, peers; /* answers: no work; peers: woken by a thread alike */
    uint64_t handed;                    /* wake-ups of a condition variable only for its mutex */
    uint64_t ended, woken;              /* waits that ended; of these, by a thread of the trace */
    uint64_t got, gave;     /* when it last went on, and when it woke a thread alike; or 0 */
    uint64_t had;           /* when it had got what it gave; or 0 */
    uint64_t first, last;   /* when the first wait there began, and the last one */
    uint64_t awaited;       /* ns in which others waited for a lock that it held */
    uint64_t moves[DEPTHS]; /* moves to another place, by the number of common functions */
    const struct gt_thread_state *thread;
    enum gt_kind kind;
    enum way way;
    bool joins, reaps;  /* it waits for the end of a thread, or of a process */
    const char *wanted; /* the variable's name; or NULL */
    uint64_t place;
};

struct worker {
    struct visits *last, *before; /* the place of its last wait, and the other place before it */
    uint64_t from, to;            /* begin and end of that wait */
    uint64_t role;                /* see role_of */
    const char *routine;          /* the routine that `role` belongs to */
    uint32_t made;                /* threads that it created, and that waited */
};

/* The sums of a place over all threads that wait there. */
struct verdict {
    uint64_t idle, not_idle;                        /* number of waits */
    uint64_t peers, named, paired, inside, outside; /* see note_peer */
    uint64_t given_back;                            /* of peers: see gt_is_taken_and_given */
    uint64_t threads, waited; /* how many wait there; their time until another one of them woke */
};

static struct {
    bool off;
    bool accepts, connects;       /* the program accepts connections, or makes some */
    bool first_seen, older;       /* the first thread waits; the trace began after other threads */
    uint64_t worked;              /* ns in which other threads than the first ran, or called */
    const struct gt_trace *trace; /* from gt_idle_decide on */
    struct visits *first;
    struct worker **worker;     /* by thread number; or NULL */
    size_t workers;             /* room in `worker` */
    struct gt_memo visits;      /* by thread and place */
    struct gt_memo verdicts;    /* by place */
    struct gt_memo own, kinds;  /* of a stack: its own functions, its kinds, each + 1 */
    struct gt_memo first_waker; /* by two roles: the role that woke the other first */
    struct gt_memo common;      /* own functions common to two stacks, + 1 */
    struct gt_memo ways;        /* of a call, + 1 */
    struct gt_memo idle_ns;     /* by thread: ns of each kind */
    struct gt_memo joined;      /* by thread: ns in which another one waited for its end */
    struct gt_memo reaping; /* by thread, and of all (0): ns in which it waited for a child's end */
} all;

void gt_idle_option(const char *value)
{
    if (strcmp(value, "none") == 0)
        all.off = true;
    else
        gt_frames_rule(GT_FRAME_IDLE, value, "--idle");
}

/* The call ------------------------------------------------------------------------------------ */

static enum way find_way(const char *call)
{
    static const struct {
        enum way way;
        const char *begins[8];
    } ways[] = {
        {NEVER, {"readdir", "readlink"}},
        {WORK,
         {"pthread_cond_", "cnd_", "sem_wait", "sem_timedwait", "sem_clockwait", "futex wait"}},
        {WORK, {"recv", "read", "fgets", "getline", "getdelim"}},
        {WORK, {"mq_receive", "mq_timedreceive", "msgrcv", "semop", "semtimedop"}},
        {EVENTS, {"epoll_", "poll", "ppoll", "select", "pselect"}},
        {EVENTS, {"io_getevents", "io_pgetevents", "io_uring_wait", "io_uring_get_cqe"}},
        {EVENTS, {"io_uring_submit_and_wait"}},
        {PARKED, {"omp idle"}},
        {LISTEN, {"accept", "sigwait", "sigtimedwait", "sigsuspend", "pause"}},
        {SLEEP, {"sleep", "usleep", "nanosleep", "clock_nanosleep", "thrd_sleep"}},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (gt_begins_with(call + strspn(call, "_"), ways[i].begins))
            return ways[i].way;
    }
    return NEVER;
}

/* Whether the span is an accept that found a connection at once: the thread came to no rest. */
static bool is_short_accept(const struct gt_span *span)
{
    static const char *const calls[] = {"accept", NULL};
    return span->kind == GT_SYSCALL && gt_begins_with(gt_leaf_of(span->stack), calls);
}

static enum way way_of(const char *call)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.ways, (uintptr_t)call));
    if (!*slot)
        *slot = 1 + (uint64_t)find_way(call);
    return (enum way)(*slot - 1);
}

bool gt_waits_for_input(const char *call)
{
    enum way way = way_of(call);
    return way == WORK || way == EVENTS || way == LISTEN;
}

/* Stacks -------------------------------------------------------------------------------------- */

/* The number of the program's own functions on the stack, from the outermost to frame `until`. */
static uint32_t count_own(const struct gt_callers *stack, uint32_t until)
{
    uint32_t n = 0;
    for (uint32_t i = stack->n; i-- > until;)
        n += i > 0 && gt_frame_is_own(stack, i);
    return n;
}

static uint32_t own_of(const struct gt_callers *stack)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.own, stack->number));
    if (!*slot)
        *slot = 1 + count_own(stack, 1);
    return (uint32_t)*slot - 1;
}

/*
 * How many own functions two stacks have in common. The last one may call from two different lines.
 */
static uint32_t find_common(const struct gt_callers *a, const struct gt_callers *b)
{
    uint32_t i = a->n, k = b->n;
    while (i > 1 && k > 1 && a->frame[i - 1].func == b->frame[k - 1].func) {
        i--;
        k--;
        if (a->frame[i].line != b->frame[k].line || a->frame[i].pc != b->frame[k].pc)
            break;
    }
    return count_own(a, i);
}

static uint32_t common_of(const struct gt_callers *a, const struct gt_callers *b)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.common, (uint64_t)a->number << 32 | b->number));
    if (!*slot)
        *slot = 1 + find_common(a, b);
    return (uint32_t)*slot - 1;
}

/* The kinds of all frames between the thread's routine and the call. */
static unsigned find_kinds(const struct gt_callers *stack)
{
    unsigned kinds = 0;
    uint32_t own = own_of(stack);
    for (uint32_t i = 1; i < stack->n; i++) {
        bool routine = gt_frame_is_own(stack, i) && --own == 0;
        kinds |= gt_frame_kinds(stack, i) & (routine ? ~(unsigned)GT_FRAME_BUSY : ~0u);
    }
    return kinds;
}

static unsigned kinds_on(const struct gt_callers *stack)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.kinds, stack->number));
    if (!*slot) {
        unsigned kinds = find_kinds(stack);
        slot = gt_need(gt_memo_at(&all.kinds, stack->number));
        *slot = 1 + kinds;
    }
    return (unsigned)(*slot - 1);
}

/*
 * The key of a place. One line may wait for work and for a lock, so the call, its kind and BUSY are
 * part of it.
 */
static uint64_t place_of(const struct gt_callers *stack, enum gt_kind kind)
{
    uint64_t site = gt_hash_mix(0, (uintptr_t)gt_site_of(stack));
    uint64_t busy = kinds_on(stack) & GT_FRAME_BUSY;
    return gt_hash_mix(gt_hash_mix(site, (uintptr_t)gt_leaf_of(stack)), busy | kind);
}

static bool is_main(const struct gt_callers *stack)
{
    return stack->n && strcmp(stack->frame[stack->n - 1].func, "_start") == 0;
}

/* Noting -------------------------------------------------------------------------------------- */

static void *item_of(struct gt_memo *memo, uint64_t key, size_t size)
{
    uint64_t *slot = gt_need(gt_memo_at(memo, key));
    if (!*slot)
        *slot = (uintptr_t)gt_need(calloc(1, size));
    return (void *)(uintptr_t)*slot;
}

static struct verdict *verdict_of(uint64_t place)
{
    return item_of(&all.verdicts, place, sizeof(struct verdict));
}

static struct visits *visits_of(const struct gt_span *span)
{
    uint64_t place = place_of(span->stack, span->kind), g = span->thread->g;
    const char *call = gt_leaf_of(span->stack);
    struct visits *v = item_of(&all.visits, gt_hash_mix(place, g), sizeof *v);
    if (!v->stack) {
        enum way way = way_of(call);
        *v = (struct visits){.next = all.first,
                             .stack = span->stack,
                             .thread = span->thread,
                             .kind = span->kind,
                             .way = way == EVENTS && span->kind == GT_SLEEP ? SLEEP : way,
                             .joins = gt_role_of(call) == GT_ROLE_JOIN,
                             .reaps = gt_waits_for_child(call),
                             .first = span->from,
                             .place = place};
        all.first = v;
        all.first_seen |= g == 1;
        all.older |= g != 1 && !span->thread->maker && !is_main(span->stack);
        all.accepts |= strncmp(call, "accept", 6) == 0;
        all.connects |= strcmp(call, "connect") == 0;
        verdict_of(place)->threads++;
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
    return way_of(call) == NEVER || kinds_on(span->stack) & GT_FRAME_BUSY || gt_is_for_token(span);
}

static struct worker *worker_of(const struct gt_thread_state *t)
{
    if (t->number >= all.workers) {
        size_t n = 2 * (size_t)t->number + 64;
        all.worker = gt_need(realloc(all.worker, n * sizeof *all.worker));
        memset(all.worker + all.workers, 0, (n - all.workers) * sizeof *all.worker);
        all.workers = n;
    }
    struct worker **its = &all.worker[t->number];
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
    struct worker *by = worker_of(span->by);
    if (by->last && span->from < by->to && is_for_lock(span))
        by->last->awaited += by->to - (span->from > by->from ? span->from : by->from);
}

static uint64_t find_role(const struct gt_thread_state *t)
{
    bool told = *t->routine && !(t->its && t->its->n &&
                                 gt_frame_kinds(t->its, 0) & (GT_FRAME_START | GT_FRAME_SKIP));
    return told ? (uintptr_t)t->routine : t->g;
}

/*
 * The role of a thread. Threads with one routine are alike, unless a library starts all threads in
 * that routine.
 */
static uint64_t role_of(const struct gt_thread_state *t)
{
    struct worker *w = worker_of(t);
    if (w->routine != t->routine) {
        w->routine = t->routine;
        w->role = find_role(t);
    }
    return w->role;
}

/*
 * Whether the waiter got an answer or room in a queue, but no work. The waker is a thread that it
 * created, or of a role that the waiter's role woke first. A thread that reports to its creator
 * that it has started proves nothing here. For two threads of one role see note_peer.
 */
static bool is_answer(const struct gt_thread_state *waits, const struct gt_thread_state *by)
{
    uint64_t its = role_of(waits), other = role_of(by);
    if (by->maker == waits)
        return true;
    uint64_t pair = gt_hash_mix(0, its) + gt_hash_mix(0, other);
    uint64_t *first = gt_need(gt_memo_at(&all.first_waker, pair));
    if (!*first)
        *first = other;
    return *first == its;
}

/* The thread gave at `at` what it had, to one waiter or to all that waited. */
static void give(struct verdict *its, struct visits *giver, uint64_t at)
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
static bool note_peer(struct visits *v, const struct gt_span *span)
{
    uint64_t at = span->from + span->ns, g = span->by->g;
    struct visits *giver = (void *)(uintptr_t)gt_memo_find(&all.visits, gt_hash_mix(v->place, g));
    bool alike = role_of(span->thread) == role_of(span->by) ||
                 (giver && role_of(span->thread) == span->thread->g);
    if (alike) {
        struct verdict *its = verdict_of(v->place);
        if (giver)
            give(its, giver, at);
        v->peers++;
        its->peers++;
        its->waited += span->ns;
        its->named += span->waker && kinds_on(span->waker) & GT_FRAME_BUSY;
        its->given_back += span->waker && gt_is_taken_and_given(v->stack, span->waker);
        its->paired += giver && giver->had;
        its->outside += v->gave && span->from > v->gave ? span->from - v->gave : 0;
    }
    v->got = at;
    v->gave = 0;
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
static bool is_at(const struct visits *v, const struct gt_span *span)
{
    return v && v->stack == span->stack && v->kind == span->kind;
}

static uint64_t *ns_at(struct gt_memo *memo, uint64_t g)
{
    return gt_need(gt_memo_at(memo, g));
}

/* Notes that the thread waits for another thread's end, or for a child's. */
static void note_owed(const struct visits *v, const struct gt_span *span)
{
    uint64_t joined = span->by ? span->by->g : span->ended ? 0 : span->thread->wanted.holder;
    if (v->reaps) {
        *ns_at(&all.reaping, span->thread->g) += span->ns;
        *ns_at(&all.reaping, 0) += span->ns;
    } else if (joined) {
        *ns_at(&all.joined, joined) += span->ns;
    }
}

void gt_idle_note(const struct gt_span *span)
{
    if (span->thread->g != 1 && (span->kind == GT_RUNNING || span->kind == GT_SYSCALL))
        all.worked += span->ns;
    if (all.off || span->kind == GT_RUNNING || span->kind == GT_SCHED || !span->stack ||
        !span->stack->n)
        return;
    if (is_short_accept(span)) {
        all.accepts = true;
        return;
    }
    if (!span->ended && span->thread->awaited)
        return; /* what it holds, not the place, decides: see gt_is_idle_at_end */
    struct worker *w = worker_of(span->thread);
    struct visits *v = is_at(w->last, span)     ? w->last
                       : is_at(w->before, span) ? w->before
                                                : visits_of(span);
    v->count++;
    v->ns += span->ns;
    v->last = span->from;
    if (v->joins || v->reaps)
        note_owed(v, span);
    if (gt_is_for_token(span))
        v->way = NEVER;
    if (span->by && v->way == WORK && is_handed(span)) {
        v->handed++;
    } else if (span->by && v->way == WORK) {
        bool alike = note_peer(v, span);
        v->answers += alike ? span->by->maker == span->thread : is_answer(span->thread, span->by);
    }
    v->ended += span->ended;
    v->woken += span->by != NULL;
    v->wanted = span->wanted ? span->wanted->lock->name : v->wanted;
    if (!w->last && span->thread->maker)
        worker_of(span->thread->maker)->made++;
    if (w->last && w->last != v) {
        uint32_t common = common_of(w->last->stack, v->stack);
        w->last->moves[common < DEPTHS ? common : DEPTHS - 1]++;
        w->before = w->last;
    }
    w->last = v;
    w->from = span->from;
    w->to = span->from + span->ns;
    if (span->by)
        note_end(span);
}

/* Deciding ------------------------------------------------------------------------------------ */

/*
 * The depth of the loop: the function in which the thread mostly stays when it moves to other
 * places.
 */
static uint32_t loop_of(const struct visits *v)
{
    uint64_t moves = 0, so_far = 0;
    for (uint32_t i = 0; i < DEPTHS; i++)
        moves += v->moves[i];
    for (uint32_t i = 0; i < DEPTHS && moves; i++) {
        so_far += v->moves[i];
        if (so_far * 10 > moves)
            return i ? i : 1;
    }
    return 1;
}

static uint32_t below_loop(const struct visits *v)
{
    uint32_t own = own_of(v->stack), loop = loop_of(v);
    return own > loop ? own - loop : 0;
}

/*
 * Whether threads wait at the place much longer than slots explain. A thread waits for a slot while
 * the others have all of them. Workers may hand a queue's lock to each other so: only for a moment,
 * and the thread that gets the lock finds no work. Only slots that were waited for are timed.
 */
static bool is_too_long(const struct verdict *its)
{
    const double times_as_long = 1.5;
    double others = its->threads > 1 ? (double)its->threads - 1 : 1;
    return its->paired && (double)its->waited * (double)its->paired >
                              times_as_long * others * (double)its->inside * (double)its->peers;
}

/*
 * Whether threads that wake each other at the place give back slots, and spend most time with one.
 * Of threads that come together, the first ones do not wait for a slot: what they give back is not
 * paired. Then the function that waits and gives says that it is a slot.
 */
static bool has_slots(const struct verdict *its)
{
    bool named = its->named * 2 > its->peers;
    uint64_t paired = its->paired > its->given_back ? its->paired : its->given_back;
    return !is_too_long(its) && paired * 100 >= its->peers * PAIRED_PERCENT &&
           its->outside * (named ? NAMED_OUTSIDE_PART : LEAST_OUTSIDE_PART) >= its->inside;
}

/* How often the thread got something other than work at the place. */
static uint64_t answers_of(const struct visits *v)
{
    return v->answers + (v->peers && has_slots(verdict_of(v->place)) ? v->peers : 0);
}

/*
 * Whether the depth of the place allows that the thread rests there. Depth decides only if other
 * threads of the trace do not end most of the waits (idle.h, 4): there, or at places of its depth.
 */
static bool is_shallow(const struct visits *v, uint64_t woken, uint64_t ended)
{
    bool events = v->way == EVENTS || v->way == LISTEN;
    return kinds_on(v->stack) & GT_FRAME_LOOP || woken * 2 >= ended ||
           below_loop(v) <= (events ? BELOW_EVENTS : BELOW_LOOP);
}

/* Whether the thread can get work there, and holds nobody up meanwhile. */
static bool is_for_work(const struct visits *v)
{
    if (v->way == NEVER || kinds_on(v->stack) & GT_FRAME_BUSY || v->awaited * 10 > v->ns ||
        answers_of(v) * 2 > v->count - v->handed)
        return false;
    return v->kind != GT_SYNC || (v->thread->g != 1 && !is_main(v->stack));
}

/* Whether the place alone allows that a thread rests there. */
static bool is_candidate(const struct visits *v)
{
    return is_for_work(v) && is_shallow(v, v->woken, v->ended);
}

/* Whether the thread waits for events, and the input is there when it reads what they announce. */
static bool is_announced(const struct visits *read, const struct visits *events)
{
    return events->way == EVENTS && read->way != EVENTS && read->kind == GT_NETWORK &&
           read->ns * 100 < events->ns * (100 - LIFE_PERCENT);
}

/*
 * Whether the thread rests at a rather than at b, if only at one of them. It rests rather in a wait
 * than in a sleep or in a read that does not wait. Next counts which place is nearer to its loop,
 * then where it gets fewer answers.
 */
static bool is_nearer(const struct visits *a, const struct visits *b)
{
    if ((a->way == SLEEP) != (b->way == SLEEP))
        return b->way == SLEEP;
    if (is_announced(a, b) || is_announced(b, a))
        return is_announced(b, a);
    if (below_loop(a) != below_loop(b))
        return below_loop(a) < below_loop(b);
    return answers_of(b) * a->count > answers_of(a) * b->count + a->count * b->count / 2;
}

/* Whether a signal on the variable found no waiter: a thread that waits now may have missed it. */
static bool is_missed(const char *variable)
{
    const struct gt_trace *trace = all.trace;
    for (size_t i = 0; variable && i < trace->n_signals; i++) {
        if (trace->signals[i].vain && strcmp(trace->signals[i].name, variable) == 0)
            return true;
    }
    return false;
}

/* Whether the thread joins the only thread that it has made. */
static bool is_launcher(const struct visits *v)
{
    return gt_role_of(gt_leaf_of(v->stack)) == GT_ROLE_JOIN && worker_of(v->thread)->made == 1;
}

static uint64_t life_of(const struct gt_thread_state *t)
{
    return (t->ended ? t->end : all.trace->ns) - t->begin;
}

/* Whether other threads than the first one do the work, and no other program is asked for it. */
static bool has_workers(void)
{
    return all.worked * 100 > all.trace->ns * (100 - LIFE_PERCENT) && !all.connects;
}

/*
 * Whether another thread waits for the thread's end, or for the end of its process. A process whose
 * maker is not known may be the child of any process that waits for one. For the end of the first
 * process the user waits.
 */
static bool is_owed(const struct visits *v)
{
    const struct gt_thread_state *t = v->thread;
    uint64_t owed = gt_memo_find(&all.joined, t->g);
    if (is_main(v->stack))
        owed += gt_memo_find(&all.reaping, t->maker ? t->maker->g : 0);
    return (t->g == 1 && !has_workers()) || owed * 100 > life_of(t) * OWED_PERCENT;
}

/*
 * Whether the thread never had any work: it waits once, from its beginning to its end. Examples: a
 * thread for signals; a launcher, which waits for the end of a whole program. A wait that another
 * thread ends may be for a start, after which the thread works. So it must be nearly all of the
 * thread's life, and no other thread may wait for the thread's end.
 */
static bool is_unused(const struct visits *v, size_t places)
{
    uint64_t lived = life_of(v->thread);
    bool whole = v->woken && v->ns * 100 > lived * 99 && !is_owed(v);
    bool to_end = !v->ended && places == 1 && v->ns * 10 > lived * 9;
    bool launcher = v->woken && v->ns * 100 > lived * LIFE_PERCENT && is_launcher(v);
    bool unused = launcher || ((whole || to_end) && is_candidate(v));
    return v->count == 1 && unused && !is_missed(v->wanted);
}

/* The place nearest to the loop among those where fn() is true; or NULL. */
static const struct visits *nearest_of(struct visits *const *its, size_t n,
                                       bool (*fn)(const struct visits *))
{
    const struct visits *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        if (fn(its[i]) && (!nearest || is_nearer(its[i], nearest)))
            nearest = its[i];
    }
    return nearest;
}

/*
 * Whether the thread waits there as often as an idle thread does. In an event loop once is enough.
 */
static bool is_repeated(const struct visits *v)
{
    bool loop = v->way == EVENTS && kinds_on(v->stack) & GT_FRAME_LOOP;
    return v->count >= (v->way == LISTEN || loop ? 1 : TIMES);
}

static bool is_returned_to(const struct visits *v)
{
    return is_repeated(v) && is_candidate(v);
}

/*
 * Whether the place can be one where the thread rests all its life. A sleep and a read are not. A
 * wait for a start is soon over and comes once. A single wait that the end of the trace cuts may be
 * for an answer that never comes.
 */
static bool is_for_life(const struct visits *v)
{
    uint64_t little = life_of(v->thread) * (100 - LIFE_PERCENT) / 100;
    bool waits = v->kind == GT_SYNC || v->way == EVENTS || v->way == LISTEN;
    return waits && v->ended && (is_repeated(v) || v->ns > little) && is_for_work(v);
}

/* Whether the thread may have missed its signal, and waits for it without a limit. */
static bool waits_in_vain(const struct visits *v)
{
    const char *call = gt_leaf_of(v->stack);
    bool limited = strstr(call, "timed") || strstr(call, "clock");
    return v->ended < v->count && !limited && is_missed(v->wanted);
}

/*
 * The place where a thread rests nearly all its life while no other thread waits for its end; or
 * NULL. Its waits may be at several places as near to the loop, as one with a timeout and one
 * without. Their depth is judged as one.
 */
static const struct visits *home_of(struct visits *const *its, size_t n)
{
    const struct visits *home = nearest_of(its, n, is_for_life);
    uint64_t ns = 0, ended = 0, woken = 0;
    for (size_t i = 0; home && i < n; i++) {
        if (!is_for_life(its[i]) || is_nearer(home, its[i]))
            continue;
        if (waits_in_vain(its[i]))
            return NULL;
        ns += its[i]->ns;
        ended += its[i]->ended;
        woken += its[i]->woken;
    }
    bool life = home && ns * 100 > life_of(home->thread) * LIFE_PERCENT;
    return life && is_shallow(home, woken, ended) && !is_owed(home) ? home : NULL;
}

/*
 * Whether all input of the program is requests: it accepts connections and makes none. A trace that
 * begins later than the program does not show the connections made before. An attached program has
 * no thread 1.
 */
static bool only_serves(void)
{
    return all.accepts && !all.connects && all.first_seen && !all.older;
}

/*
 * The place where the thread gets its input, in a program that only serves; or NULL. Any number of
 * layers may read the input. But what a thread reads deeper than other input is answers.
 */
static const struct visits *intake_of(struct visits *const *its, size_t n)
{
    const struct visits *intake = NULL, *nearest = NULL;
    uint64_t ns = 0;
    for (size_t i = 0; i < n; i++) {
        const struct visits *v = its[i];
        if (v->kind != GT_NETWORK || v->way == LISTEN || !is_repeated(v) || !is_for_work(v))
            continue;
        intake = intake && intake->ns > v->ns ? intake : v;
        nearest = nearest && below_loop(nearest) <= below_loop(v) ? nearest : v;
        ns += v->ns;
    }
    bool only =
        intake && intake->ns * 100 > ns * LIFE_PERCENT && below_loop(nearest) == below_loop(intake);
    return only && only_serves() ? intake : NULL;
}

/* Whether the thread comes there when a connection is over, for the next one. */
static bool is_above(const struct visits *v, const struct visits *intake)
{
    return is_candidate(v) && v->way != SLEEP && v->last > intake->first &&
           below_loop(v) < below_loop(intake);
}

static void judge_thread(struct visits *const *its, size_t n)
{
    const struct visits *nearest = nearest_of(its, n, is_returned_to);
    const struct visits *home = home_of(its, n), *intake = intake_of(its, n);
    for (size_t i = 0; i < n; i++) {
        const struct visits *v = its[i];
        struct verdict *verdict = verdict_of(v->place);
        unsigned kinds = kinds_on(v->stack);
        bool idle = nearest && is_returned_to(v) && !is_nearer(nearest, v);
        bool ruled = kinds & GT_FRAME_IDLE && !(kinds & GT_FRAME_BUSY) && v->way != NEVER;
        ruled |= v->way == PARKED || v == intake || is_unused(v, n) ||
                 (intake && is_above(v, intake)) || (home && is_for_life(v) && !is_nearer(home, v));
        if (is_repeated(v) || ruled)
            *(idle || ruled ? &verdict->idle : &verdict->not_idle) += v->count;
    }
}

static bool is_idle_place(uint64_t place)
{
    const struct verdict *v = (void *)(uintptr_t)gt_memo_find(&all.verdicts, place);
    return v && v->idle > v->not_idle;
}

static int by_thread(const void *a, const void *b)
{
    const struct visits *x = *(void *const *)a, *y = *(void *const *)b;
    return x->thread->g < y->thread->g ? -1 : x->thread->g > y->thread->g;
}

/* Judges thread by thread. A place is idle if more waits there are idle than not. */
void gt_idle_decide(const struct gt_trace *trace)
{
    all.trace = trace;
    size_t n = 0;
    for (const struct visits *v = all.first; v; v = v->next)
        n++;
    struct visits **list = gt_need(calloc(n + 1, sizeof *list));
    n = 0;
    for (struct visits *v = all.first; v; v = v->next)
        list[n++] = v;
    qsort(list, n, sizeof *list, by_thread);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && list[to]->thread == list[from]->thread;)
            to++;
        judge_thread(list + from, to - from);
    }
    free(list);
    for (const struct visits *v = all.first; v; v = v->next) {
        uint64_t *ns = item_of(&all.idle_ns, v->thread->g, GT_KINDS * sizeof *ns);
        ns[v->kind] += is_idle_place(v->place) ? v->ns : 0;
    }
}

bool gt_is_idle_at(const struct gt_callers *stack, enum gt_kind kind)
{
    if (all.off || kind == GT_RUNNING || kind == GT_SCHED || !stack || !stack->n)
        return false;
    return is_idle_place(place_of(stack, kind));
}

/* Whether its wait when the trace ends is never idle, whatever its place. */
static bool is_never_idle(const struct gt_thread_state *t)
{
    return t->at_end || t->awaited;
}

bool gt_is_idle_at_end(const struct gt_thread_state *t)
{
    return !is_never_idle(t) && gt_is_idle_at(t->stack, gt_kind_of(t));
}

uint64_t gt_idle_ns(const struct gt_thread_state *t, enum gt_kind kind)
{
    const uint64_t *ns = (void *)(uintptr_t)gt_memo_find(&all.idle_ns, t->g);
    return ns ? ns[kind] : 0;
}

/* The line ------------------------------------------------------------------------------------ */

void gt_idle_sum_add(struct gt_idle_sum *sum, const struct gt_callers *stack, uint64_t count,
                     uint64_t ns)
{
    sum->count += count;
    sum->ns += ns;
    for (size_t i = 0; i < sum->places; i++) {
        const struct gt_callers *its = sum->place[i].stack;
        if (gt_leaf_of(its) == gt_leaf_of(stack) && gt_site_of(its) == gt_site_of(stack)) {
            sum->place[i].ns += ns;
            return;
        }
    }
    sum->place = gt_need_room(sum->place, sum->places, &sum->room, sizeof *sum->place);
    sum->place[sum->places++] = (struct gt_idle_place){stack, ns};
}

void gt_idle_sum_trace(struct gt_idle_sum *sum, bool (*of)(const struct gt_thread_state *t))
{
    for (const struct visits *v = all.first; v; v = v->next) {
        if (is_idle_place(v->place) && of(v->thread))
            gt_idle_sum_add(sum, v->stack, v->count, v->ns);
    }
}
