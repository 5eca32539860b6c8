/* The verdict for a thread's places: see idle_private.h. The rules stand in idle.h. */
#include "idle_private.h"

#include "call_places.h"
#include "frame_code.h"
#include "roles.h"

#include <string.h>

enum {
    TIMES = 3,           /* visits that make a place one that threads return to */
    BELOW_LOOP = 3,      /* functions between the loop and the call: see is_shallow */
    BELOW_EVENTS = 6,    /* BELOW_LOOP for calls that belong to a loop */
    PAIRED_PERCENT = 75, /* of slots given back: by a thread that waited for one before */
    LEAST_OUTSIDE_PART =
        20,                 /* most time with a slot per time without: else workers pass work on; */
    NAMED_OUTSIDE_PART = 4, /* the same limit if functions are named as a producer's */
    LIFE_PERCENT = 95,      /* a thread that rests so much of its life had nothing else to do */
    OWED_PERCENT = 10       /* unless another thread waits for its end so much of its life */
};

/*
 * The depth of the loop: the function in which the thread mostly stays when it moves to other
 * places.
 */
static uint32_t loop_of(const struct gt_visits *v)
{
    uint64_t moves = 0, so_far = 0;
    for (uint32_t i = 0; i < GT_DEPTHS; i++)
        moves += v->moves[i];
    for (uint32_t i = 0; i < GT_DEPTHS && moves; i++) {
        so_far += v->moves[i];
        if (so_far * 10 > moves)
            return i ? i : 1;
    }
    return 1;
}

static uint32_t below_loop(const struct gt_visits *v)
{
    uint32_t own = gt_idle_own_of(v->stack), loop = loop_of(v);
    return own > loop ? own - loop : 0;
}

/*
 * Whether threads wait at the place much longer than slots explain. A thread waits for a slot while
 * the others have all of them. Workers may hand a queue's lock to each other so: only for a moment,
 * and the thread that gets the lock finds no work. Only slots that were waited for are timed.
 */
static bool is_too_long(const struct gt_idle_verdict *its)
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
static bool has_slots(const struct gt_idle_verdict *its)
{
    bool named = its->named * 2 > its->peers;
    uint64_t paired = its->paired > its->given_back ? its->paired : its->given_back;
    return !is_too_long(its) && paired * 100 >= its->peers * PAIRED_PERCENT &&
           its->outside * (named ? NAMED_OUTSIDE_PART : LEAST_OUTSIDE_PART) >= its->inside;
}

/* How often the thread got something other than work at the place. */
static uint64_t answers_of(const struct gt_visits *v)
{
    return v->answers + (v->peers && has_slots(gt_idle_verdict_of(v->key.place)) ? v->peers : 0);
}

/*
 * Whether the depth of the place allows that the thread rests there. Depth decides only if other
 * threads of the trace do not end most of the waits (idle.h, 4): there, or at places of its depth.
 */
static bool is_shallow(const struct gt_visits *v, uint64_t woken, uint64_t ended)
{
    bool events = v->way == GT_WAY_EVENTS || v->way == GT_WAY_LISTEN;
    return gt_idle_kinds_on(v->stack) & GT_FRAME_LOOP || woken * 2 >= ended ||
           below_loop(v) <= (events ? BELOW_EVENTS : BELOW_LOOP);
}

/* Whether the thread can get work there. */
static bool gets_work(const struct gt_visits *v)
{
    if (v->way == GT_WAY_NEVER || gt_idle_kinds_on(v->stack) & GT_FRAME_BUSY ||
        answers_of(v) * 2 > v->count - v->handed)
        return false;
    return v->kind != GT_SYNC || (v->thread->g != 1 && !gt_idle_is_main(v->stack));
}

/* Whether the thread can get work there, and holds nobody up meanwhile. */
static bool is_for_work(const struct gt_visits *v)
{
    return gets_work(v) && v->awaited * 10 <= v->ns;
}

/* Whether other threads give the thread work there, and not only a start. */
static bool is_given_work(const struct gt_visits *v)
{
    return v->kind == GT_SYNC && v->woken > 1 && v->woken * 2 >= v->ended && gets_work(v);
}

/* Whether the place alone allows that a thread rests there. */
static bool is_candidate(const struct gt_visits *v)
{
    return is_for_work(v) && is_shallow(v, v->woken, v->ended);
}

/* Whether the thread waits for events, and the input is there when it reads what they announce. */
static bool is_announced(const struct gt_visits *read, const struct gt_visits *events)
{
    return events->way == GT_WAY_EVENTS && read->way != GT_WAY_EVENTS && read->kind == GT_NETWORK &&
           read->ns * 100 < events->ns * (100 - LIFE_PERCENT);
}

/* Whether both waits are somewhere below one function of a library, which tells no depth. */
static bool is_below_one(const struct gt_visits *a, const struct gt_visits *b)
{
    return gt_is_of_libraries(a->stack) && gt_is_of_libraries(b->stack) &&
           gt_site_of(a->stack) == gt_site_of(b->stack);
}

/* Whether it is a wait for another thread that mostly none ends: it is rather for a time. */
static bool is_timer(const struct gt_visits *v)
{
    return v->way == GT_WAY_WORK && v->kind == GT_SYNC && v->woken * 2 < v->ended;
}

/* Whether the wait may have a time limit. The limit of a futex is not known. */
static bool is_limited(const struct gt_visits *v)
{
    const char *call = gt_leaf_of(v->stack);
    return strstr(call, "timed") || strstr(call, "clock") || strstr(call, "futex");
}

/* Whether hardly any thread ever ends the waits there, but their time limits do. */
static bool only_times_out(const struct gt_visits *v)
{
    return is_timer(v) && v->woken * 10 < v->ended && is_limited(v);
}

/*
 * Whether the thread rests at a rather than at b, if only at one of them. It rests rather in a wait
 * than in a sleep or in a read that does not wait. Next counts which place is nearer to its loop,
 * then where it gets fewer answers. Below one function of a library, as of an interpreter, it rests
 * where it waits longest: other waits there may be for a lock of the library's.
 */
static bool is_nearer(const struct gt_visits *a, const struct gt_visits *b)
{
    if ((a->way == GT_WAY_SLEEP) != (b->way == GT_WAY_SLEEP))
        return b->way == GT_WAY_SLEEP;
    if (is_announced(a, b) || is_announced(b, a))
        return is_announced(b, a);
    if (below_loop(a) != below_loop(b))
        return below_loop(a) < below_loop(b);
    if (is_below_one(a, b))
        return is_timer(a) == is_timer(b) ? a->ns > b->ns : is_timer(b);
    return answers_of(b) * a->count > answers_of(a) * b->count + a->count * b->count / 2;
}

/* As is_nearer. But at any depth the thread gets work rather where others end its waits. */
static bool is_rather_for_work(const struct gt_visits *a, const struct gt_visits *b)
{
    bool sleeps = a->way == GT_WAY_SLEEP || b->way == GT_WAY_SLEEP;
    return !sleeps && only_times_out(a) != only_times_out(b) ? only_times_out(b) : is_nearer(a, b);
}

/* Whether a signal on the variable found no waiter: a thread that waits now may have missed it. */
static bool is_missed(const char *variable)
{
    const struct gt_trace *trace = gt_idle.trace;
    for (size_t i = 0; variable && i < trace->n_signals; i++) {
        if (trace->signals[i].vain && strcmp(trace->signals[i].name, variable) == 0)
            return true;
    }
    return false;
}

/* Whether the thread joins the only thread that it has made. */
static bool is_launcher(const struct gt_visits *v)
{
    return gt_role_of(gt_leaf_of(v->stack)) == GT_ROLE_JOIN &&
           gt_idle_worker_of(v->thread)->made == 1;
}

static uint64_t life_of(const struct gt_thread_state *t)
{
    return (t->ended ? t->end : gt_idle.trace->ns) - t->begin;
}

/* Whether other threads than the first one do the work, and no other program is asked for it. */
static bool has_workers(void)
{
    return gt_idle.worked * 100 > gt_idle.trace->ns * (100 - LIFE_PERCENT) && !gt_idle.connects;
}

/*
 * Whether another thread waits for the thread's end, or for the end of its process. A process whose
 * maker is not known may be the child of any process that waits for one. For the end of the first
 * process the user waits.
 */
static bool is_owed(const struct gt_visits *v)
{
    const struct gt_thread_state *t = v->thread;
    uint64_t owed = gt_memo_find(&gt_idle.joined, t->g);
    if (gt_idle_is_main(v->stack))
        owed += gt_memo_find(&gt_idle.reaping, t->maker ? t->maker->g : 0);
    return (t->g == 1 && !has_workers()) || owed * 100 > life_of(t) * OWED_PERCENT;
}

/*
 * Whether the thread never had any work: it waits once, from its beginning to its end. Examples: a
 * thread for signals; a launcher, which waits for the end of a whole program. A wait that another
 * thread ends may be for a start, after which the thread works. So it must be nearly all of the
 * thread's life, and no other thread may wait for the thread's end.
 */
static bool is_unused(const struct gt_visits *v, size_t places)
{
    uint64_t lived = life_of(v->thread);
    bool whole = v->woken && v->ns * 100 > lived * 99 && !is_owed(v);
    bool to_end = !v->ended && places == 1 && v->ns * 10 > lived * 9;
    bool launcher = v->woken && v->ns * 100 > lived * LIFE_PERCENT && is_launcher(v);
    bool unused = launcher || ((whole || to_end) && is_candidate(v));
    return v->count == 1 && unused && !is_missed(v->wanted);
}

/*
 * The nearest place among those where fn() is true; or NULL. A sleep is no place to rest for a
 * thread that others give work, even if rarely.
 */
static const struct gt_visits *
nearest_of(struct gt_visits *const *its, size_t n, bool (*fn)(const struct gt_visits *),
           bool (*nearer)(const struct gt_visits *, const struct gt_visits *))
{
    const struct gt_visits *nearest = NULL;
    bool given = false;
    for (size_t i = 0; i < n; i++) {
        given |= is_given_work(its[i]);
        if (fn(its[i]) && (!nearest || nearer(its[i], nearest)))
            nearest = its[i];
    }
    return nearest && given && nearest->way == GT_WAY_SLEEP ? NULL : nearest;
}

/*
 * Whether the thread waits there as often as an idle thread does. In an event loop once is enough.
 */
static bool is_repeated(const struct gt_visits *v)
{
    bool loop = v->way == GT_WAY_EVENTS && gt_idle_kinds_on(v->stack) & GT_FRAME_LOOP;
    return v->count >= (v->way == GT_WAY_LISTEN || loop ? 1 : TIMES);
}

static bool is_returned_to(const struct gt_visits *v)
{
    return is_repeated(v) && is_candidate(v);
}

/*
 * Whether the place can be one where the thread rests all its life. A sleep and a read are not. A
 * wait for a start is soon over and comes once. A single wait that the end of the trace cuts may be
 * for an answer that never comes.
 */
static bool is_for_life(const struct gt_visits *v)
{
    uint64_t little = life_of(v->thread) * (100 - LIFE_PERCENT) / 100;
    bool waits = v->kind == GT_SYNC || v->way == GT_WAY_EVENTS || v->way == GT_WAY_LISTEN;
    return waits && v->ended && (is_repeated(v) || v->ns > little) && is_for_work(v);
}

/* Whether the thread may have missed its signal, and waits for it without a limit. */
static bool waits_in_vain(const struct gt_visits *v)
{
    return v->ended < v->count && !is_limited(v) && is_missed(v->wanted);
}

/*
 * The place where a thread rests nearly all its life while no other thread waits for its end; or
 * NULL. Its waits may be at several places as near to the loop, as one with a timeout and one
 * without. Their depth is judged as one.
 */
static const struct gt_visits *home_of(struct gt_visits *const *its, size_t n)
{
    const struct gt_visits *home = nearest_of(its, n, is_for_life, is_nearer);
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
 * Whether all input of the program is requests: it lets clients come and makes no connection. A
 * trace that begins later than the program does not show the connections made before. An attached
 * program has no thread 1.
 */
static bool only_serves(void)
{
    return gt_idle.serves && !gt_idle.connects && gt_idle.first_seen && !gt_idle.older;
}

/*
 * The place where the thread gets its input, in a program that only serves; or NULL. Any number of
 * layers may read the input. But what a thread reads deeper than other input is answers.
 */
static const struct gt_visits *intake_of(struct gt_visits *const *its, size_t n)
{
    const struct gt_visits *intake = NULL, *nearest = NULL;
    uint64_t ns = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gt_visits *v = its[i];
        if (v->kind != GT_NETWORK || v->way == GT_WAY_LISTEN || !is_repeated(v) || !is_for_work(v))
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
static bool is_above(const struct gt_visits *v, const struct gt_visits *intake)
{
    return is_candidate(v) && v->way != GT_WAY_SLEEP && v->last > intake->first &&
           below_loop(v) < below_loop(intake);
}

void gt_idle_judge_thread(struct gt_visits *const *its, size_t n)
{
    const struct gt_visits *nearest = nearest_of(its, n, is_returned_to, is_rather_for_work);
    const struct gt_visits *home = home_of(its, n), *intake = intake_of(its, n);
    for (size_t i = 0; i < n; i++) {
        const struct gt_visits *v = its[i];
        struct gt_idle_verdict *place = gt_idle_verdict_of(v->key.place);
        struct gt_idle_verdict *purpose = gt_idle_verdict_of(v->key.purpose);
        unsigned kinds = gt_idle_kinds_on(v->stack);
        bool farther = nearest && is_rather_for_work(nearest, v);
        bool idle = nearest && is_returned_to(v) && !farther;
        bool ruled = kinds & GT_FRAME_IDLE && !(kinds & GT_FRAME_BUSY) && v->way != GT_WAY_NEVER;
        ruled |= v->way == GT_WAY_PARKED || v == intake || is_unused(v, n) ||
                 (intake && is_above(v, intake)) ||
                 (home && is_for_life(v) && !is_nearer(home, v) && !(farther && only_times_out(v)));
        if (is_repeated(v) || ruled) {
            *(idle || ruled ? &place->idle : &place->not_idle) += v->count;
            *(idle || ruled ? &purpose->idle : &purpose->not_idle) += v->count;
        }
    }
}
