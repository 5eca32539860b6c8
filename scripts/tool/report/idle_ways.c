/* How a call waits, and where on its stack: see idle_private.h. */
#include "idle_private.h"

#include "call_places.h"
#include "frame_code.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <string.h>

static struct {
    struct gt_memo own, kinds; /* of a stack: its own functions, its kinds, each + 1 */
    struct gt_memo common;     /* own functions common to two stacks, + 1 */
    struct gt_memo ways;       /* of a call, + 1 */
    struct gt_memo purposes;   /* of a stack: see gt_purpose_of */
} all;

/* The call ------------------------------------------------------------------------------------ */

static enum gt_way find_way(const char *call)
{
    static const struct {
        enum gt_way way;
        const char *begins[8];
    } ways[] = {
        {GT_WAY_NEVER, {"readdir", "readlink"}},
        {GT_WAY_WORK,
         {"pthread_cond_", "cnd_", "sem_wait", "sem_timedwait", "sem_clockwait", "futex wait"}},
        {GT_WAY_WORK, {"recv", "read", "fgets", "getline", "getdelim"}},
        {GT_WAY_WORK, {"mq_receive", "mq_timedreceive", "msgrcv", "semop", "semtimedop"}},
        {GT_WAY_EVENTS, {"epoll_", "poll", "ppoll", "select", "pselect"}},
        {GT_WAY_EVENTS, {"io_getevents", "io_pgetevents", "io_uring_wait", "io_uring_get_cqe"}},
        {GT_WAY_EVENTS, {"io_uring_submit_and_wait"}},
        {GT_WAY_PARKED, {"omp idle"}},
        {GT_WAY_LISTEN, {"accept", "sigwait", "sigtimedwait", "sigsuspend", "pause"}},
        {GT_WAY_SLEEP, {"sleep", "usleep", "nanosleep", "clock_nanosleep", "thrd_sleep"}},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (gt_begins_with(call + strspn(call, "_"), ways[i].begins))
            return ways[i].way;
    }
    return GT_WAY_NEVER;
}

enum gt_way gt_idle_way_of(const char *call)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.ways, (uintptr_t)call));
    if (!*slot)
        *slot = 1 + (uint64_t)find_way(call);
    return (enum gt_way)(*slot - 1);
}

bool gt_waits_for_input(const char *call)
{
    enum gt_way way = gt_idle_way_of(call);
    return way == GT_WAY_WORK || way == GT_WAY_EVENTS || way == GT_WAY_LISTEN;
}

bool gt_is_parked(const char *call)
{
    return gt_idle_way_of(call) == GT_WAY_PARKED;
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

uint32_t gt_idle_own_of(const struct gt_callers *stack)
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

uint32_t gt_idle_common_of(const struct gt_callers *a, const struct gt_callers *b)
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
    uint32_t own = gt_idle_own_of(stack);
    for (uint32_t i = 1; i < stack->n; i++) {
        bool routine = gt_frame_is_own(stack, i) && --own == 0;
        kinds |= gt_frame_kinds(stack, i) & (routine ? ~(unsigned)GT_FRAME_BUSY : ~0u);
    }
    return kinds;
}

unsigned gt_idle_kinds_on(const struct gt_callers *stack)
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
 * The key of a place or a purpose. One line may wait for work and for a lock, so the call, its kind
 * and BUSY are part of it.
 */
static uint64_t key_of(const struct gt_callers *stack, enum gt_kind kind,
                       const struct gt_where *place)
{
    uint64_t site = gt_hash_mix(0, (uintptr_t)place);
    uint64_t busy = gt_idle_kinds_on(stack) & GT_FRAME_BUSY;
    return gt_hash_mix(gt_hash_mix(site, (uintptr_t)gt_leaf_of(stack)), busy | kind);
}

struct gt_idle_keys gt_idle_keys_of(const struct gt_callers *stack, enum gt_kind kind)
{
    uint64_t *slot = gt_need(gt_memo_at(&all.purposes, stack->number));
    if (!*slot)
        *slot = (uintptr_t)gt_purpose_of(stack);
    const struct gt_where *purpose = (void *)(uintptr_t)*slot;
    const struct gt_where *place = gt_is_of_libraries(stack) ? purpose : gt_site_of(stack);
    return (struct gt_idle_keys){key_of(stack, kind, place), key_of(stack, kind, purpose)};
}

bool gt_idle_is_main(const struct gt_callers *stack)
{
    return stack->n && strcmp(stack->frame[stack->n - 1].func, "_start") == 0;
}

bool gt_idle_has_owner(const struct gt_thread_state *t)
{
    return t->at_end || t->awaited;
}

bool gt_is_never_idle(const struct gt_span *span)
{
    return !span->ended && gt_idle_has_owner(span->thread);
}
