/* Which threads are alike: see idle_private.h. */
#include "idle_private.h"

#include "frame_code.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

/*
 * A routine. The routine of a trampoline only calls what the thread is for: always from one line.
 */
struct routine {
    const char *func; /* the frame of its calls; NULL: none seen */
    uint64_t line, pc;
    bool works; /* it waits itself, or calls from several lines: no trampoline */
};

static struct {
    struct gt_memo routines;    /* by the routine's name */
    struct gt_memo first;       /* by routine and the function that it called: a thread */
    struct gt_memo seen;        /* by thread and stack */
    struct gt_memo first_waker; /* by two roles: the role that woke the other first */
} all;

typedef unsigned kinds_fn(const struct gt_callers *stack, uint32_t i);

/* Whether the routine tells anything. A library may start all threads in one of its own. */
static bool tells(const struct gt_thread_state *t, kinds_fn *kinds_of)
{
    unsigned kinds = t->its && t->its->n ? kinds_of(t->its, 0) : 0;
    return *t->routine && !(kinds & (GT_FRAME_START | GT_FRAME_SKIP));
}

/* The routine; or the thread's number if the routine tells nothing. */
static uint64_t routine_role(const struct gt_thread_state *t, kinds_fn *kinds_of)
{
    return tells(t, kinds_of) ? (uintptr_t)t->routine : t->g;
}

/* The next frame of the program's own code below frame i, nearer to the call; 0: none. */
static uint32_t next_own(const struct gt_callers *stack, uint32_t i)
{
    while (i-- > 1) {
        if (gt_frame_is_own(stack, i))
            return i;
    }
    return 0;
}

/* The frame of the thread's routine. */
static uint32_t routine_on(const struct gt_callers *stack)
{
    uint32_t i = stack->n - 1;
    while (i > 0 && gt_frame_kinds(stack, i) & GT_FRAME_START)
        i--;
    return i;
}

static struct routine *routine_of(const struct gt_thread_state *t)
{
    return gt_idle_item_of(&all.routines, (uintptr_t)t->routine, sizeof(struct routine));
}

/* The first thread that is known to do the same. */
static const struct gt_thread_state *first_like(const struct gt_thread_state *t)
{
    for (const struct gt_worker *w; (w = gt_idle_worker_of(t))->like; t = w->like)
        ;
    return t;
}

/* Notes that thread a does the same as b, which was seen before: the role of b stays. */
static void unite(const struct gt_thread_state *a, const struct gt_thread_state *b)
{
    a = first_like(a);
    b = first_like(b);
    if (a != b)
        gt_idle_worker_of(a)->like = b;
}

void gt_idle_note_begin(const struct gt_thread_state *t, const struct gt_callers *stack)
{
    uint64_t *seen =
        gt_need(gt_memo_at(&all.seen, (uint64_t)t->number << 32 | (stack->number + 1)));
    if (*seen || !stack->n || !tells(t, gt_frame_kinds))
        return;
    *seen = 1;
    struct routine *its = routine_of(t);
    uint32_t i = routine_on(stack), next = next_own(stack, i);
    const struct gt_where *frame = &stack->frame[i];
    if (!its->func)
        *its = (struct routine){frame->func, frame->line, frame->pc, false};
    its->works |= !next || !gt_frame_is_own(stack, i) || its->func != frame->func ||
                  its->line != frame->line || its->pc != frame->pc;
    if (!next)
        return;
    uint64_t key =
        gt_hash_mix(gt_hash_mix(0, (uintptr_t)t->routine), (uintptr_t)stack->frame[next].func);
    uint64_t *first = gt_need(gt_memo_at(&all.first, key));
    if (*first)
        unite(t, (void *)(uintptr_t)*first);
    else
        *first = (uintptr_t)t;
}

uint64_t gt_idle_role_of(const struct gt_thread_state *t)
{
    uint64_t role = routine_role(t, gt_frame_kinds);
    const struct routine *its = role == t->g ? NULL : routine_of(t);
    return !its || its->works || !its->func ? role : first_like(t)->g;
}

/*
 * Routines, also those that are templates of a library, tell which role woke which first, unless
 * both threads have the same.
 */
bool gt_idle_is_answer(const struct gt_thread_state *waits, const struct gt_thread_state *by)
{
    uint64_t its = routine_role(waits, gt_frame_kinds_of_name);
    uint64_t other = routine_role(by, gt_frame_kinds_of_name);
    if (by->maker == waits)
        return true;
    if (its == other) {
        its = gt_idle_role_of(waits);
        other = gt_idle_role_of(by);
    }
    uint64_t pair = gt_hash_mix(0, its) + gt_hash_mix(0, other);
    uint64_t *first = gt_need(gt_memo_at(&all.first_waker, pair));
    if (!*first)
        *first = other;
    return *first == its;
}
