/* See hot.h. */
#include "hot.h"

#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/texts.h"
#include "preload/registry/owner.h"
#include "preload/registry/sem_lock.h"
#include "preload/shared/options.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/capture.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

/*
 * A shorter hold explains no wait. Writing its log, with the lock held, would take as long as the
 * hold. A server whose locks change hands 20,000 times a second became slower from that.
 */
enum { SHORT_NS = 10000 };

/*
 * After a wait of SHORT_NS or more a lock stays hot for HOT_TIMES the length of the wait, at most
 * HOT_MAX_NS. A shorter wait needs no hold's log to explain it. Libc's mutexes and read-write locks
 * name their holders. The holders of semaphores and of Python's locks are known if they have noted
 * their holds: these locks are hot for HOT_MIN_NS after any wait begins.
 */
#define HOT_MIN_NS UINT64_C(10000000)
#define HOT_MAX_NS UINT64_C(10000000000)
enum { HOT_TIMES = 1000 };

struct gt_heat gt_heats[GT_REGISTRY_SLOTS] GT_SPARSE;
enum { CLAIMED = GT_HOLDER_SELF }; /* a thread is writing the record */

/*
 * Records the first waiter and its lock's holder. The owner may have given the lock up by now, or
 * may have taken it again. So the time is set only if the thread still holds the lock when the
 * record stands: from then on the wait is for this hold. A record without a time says nothing.
 */
static void note_waiter(struct gt_heat *h, enum gt_lock_kind kind, const void *lock, uint32_t owner)
{
    uint32_t nobody = 0;
    if (owner == GT_HOLDER_UNKNOWN || owner >= GT_HOLDER_READERS ||
        atomic_load_explicit(&h->owner, memory_order_relaxed) ||
        !atomic_compare_exchange_strong(&h->owner, &nobody, CLAIMED))
        return;
    atomic_store_explicit(&h->lock, lock, memory_order_relaxed);
    atomic_store_explicit(&h->since, 0, memory_order_relaxed);
    atomic_store(&h->owner, owner);
    atomic_thread_fence(memory_order_seq_cst);
    if (gt_owner_of(kind, lock) == owner) /* the record may be another waiter's by now */
        atomic_compare_exchange_strong(&h->since, &(uint64_t){0}, gt_clock_now());
    else
        atomic_compare_exchange_strong(&h->owner, &owner, 0);
}

static void heat_until(struct gt_heat *h, uint64_t until)
{
    if (atomic_load_explicit(&h->until, memory_order_relaxed) < until)
        atomic_store_explicit(&h->until, until, memory_order_relaxed);
}

static void set_hot(const void *lock)
{
    if (!gt_hot_is(lock))
        atomic_fetch_or(&gt_registry_count[gt_registry_slot(lock)], GT_REGISTRY_HOT);
}

void gt_hot_touch(enum gt_lock_kind kind, const void *lock, uint64_t now, uint32_t owner)
{
    struct gt_heat *h = gt_heat_of(lock);
    bool is_libcs = kind == GT_LOCK_MUTEX || kind == GT_LOCK_RWLOCK;
    heat_until(h, is_libcs ? now : now + gt_clock_units(HOT_MIN_NS));
    set_hot(lock);
    note_waiter(h, kind, lock, owner);
}

void gt_hot_waited(const void *lock, uint64_t since, uint64_t until)
{
    uint64_t most = gt_clock_units(HOT_MAX_NS), units = until > since ? until - since : 0;
    if (units < gt_clock_units(SHORT_NS))
        return;
    heat_until(gt_heat_of(lock), until + (units < most / HOT_TIMES ? units * HOT_TIMES : most));
    set_hot(lock);
}

/*
 * When a waiter began to wait for the lock that the thread has just given up; 0: not known. Removes
 * the record.
 */
static uint64_t waited_since(const void *lock, uint32_t tid)
{
    struct gt_heat *h = gt_heat_of(lock);
    uint32_t owner = tid;
    if (!gt_hot_is_waited_for(lock, tid))
        return 0;
    uint64_t since = atomic_load_explicit(&h->since, memory_order_relaxed);
    return atomic_compare_exchange_strong(&h->owner, &owner, 0) ? since : 0;
}

static void cool(const void *lock, uint64_t now)
{
    struct gt_heat *h = gt_heat_of(lock);
    _Atomic uint64_t *word = &gt_registry_count[gt_registry_slot(lock)];
    if (gt_registry_waits(lock) || now <= atomic_load_explicit(&h->until, memory_order_relaxed))
        return;
    atomic_fetch_add(&h->epoch, 1);
    atomic_store(&h->owner, 0);
    atomic_fetch_and(word, ~GT_REGISTRY_HOT);
    gt_sem_lock_cooled(lock);
}

void gt_hot_cool(const void *lock)
{
    cool(lock, gt_clock_now());
}

void gt_hot_reset(void)
{
    for (struct gt_heat *h = gt_heats; h < gt_heats + GT_REGISTRY_SLOTS; h++) {
        atomic_fetch_add(&h->epoch, 1);
        atomic_store(&h->owner, 0);
    }
    gt_sem_lock_all_cooled();
}

/* The thread's hold of that lock, or NULL. */
static struct gt_hold *find(struct gt_holds *holds, const void *lock)
{
    for (uint32_t rest = holds->in_use; rest; rest &= rest - 1) {
        struct gt_hold *hold = &holds->hold[__builtin_ctz(rest)];
        if (hold->lock == lock)
            return hold;
    }
    return NULL;
}

/* Whether the hold may be over: after its lock has cooled, no unlock reports the end of a hold. */
static bool is_over(const struct gt_hold *hold)
{
    return hold->epoch !=
           atomic_load_explicit(&gt_heat_of(hold->lock)->epoch, memory_order_relaxed);
}

static struct gt_hold *any(struct gt_holds *holds)
{
    uint32_t free = ~holds->in_use & ((1u << GT_HOLDS_MAX) - 1);
    for (uint32_t i = 0; !free && i < GT_HOLDS_MAX; i++)
        free = is_over(&holds->hold[i]) ? 1u << i : 0;
    uint32_t i = free ? (uint32_t)__builtin_ctz(free) : holds->next++ % GT_HOLDS_MAX;
    holds->in_use |= 1u << i;
    return &holds->hold[i];
}

static void drop(struct gt_holds *holds, const struct gt_hold *hold)
{
    holds->in_use &= ~(1u << (hold - holds->hold));
}

/*
 * Makes the light hold an ordinary one: it is one of several now, or worth a log. Inside the guard.
 */
static void keep_light(struct gt_holds *holds)
{
    struct gt_light_hold *light = &holds->light;
    struct gt_hold hold = {
        .lock = light->lock, .since = light->since, .epoch = light->epoch, .pc = light->pc};
    if (hold.lock && !is_over(&hold))
        *any(holds) = hold;
    light->lock = NULL;
}

void gt_hot_taken(const void *lock, uint64_t since, const void *pc)
{
    if (!since && gt_hot_note_light(lock, pc))
        return;
    struct gt_thread *t = gt_muted() ? NULL : gt_thread_enter();
    if (!t)
        return;
    keep_light(&t->holds);
    uint32_t epoch = atomic_load_explicit(&gt_heat_of(lock)->epoch, memory_order_relaxed);
    waited_since(lock, t->w.m); /* forget a wait for an earlier hold */
    struct gt_hold *hold = find(&t->holds, lock);
    hold = hold ? hold : any(&t->holds);
    *hold = (struct gt_hold){.lock = lock, .since = since, .epoch = epoch, .pc = (uintptr_t)pc};
    gt_thread_leave(t);
}

static void spend(struct gt_hold *hold, uint32_t hook, uint64_t since, uint64_t until)
{
    if (!hold->since) {
        hold->since = since;
        hold->longer = true;
    }
    if (hold->since > since || since >= until)
        return;
    hold->spent += until - since;
    if (until - since > hold->longest) {
        hold->longest = until - since;
        hold->longest_hook = hook;
    }
}

void gt_hot_spent(struct gt_holds *holds, uint32_t hook, uint64_t since, uint64_t until)
{
    keep_light(holds);
    for (uint32_t rest = holds->in_use; rest; rest &= rest - 1)
        spend(&holds->hold[__builtin_ctz(rest)], hook, since, until);
}

/* Writes a time with two decimals, which is exact to 1 %. */
static void put_time(struct gt_strbuf *t, uint64_t units)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units_of[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "µs"}, {1, "ns"}};
    uint64_t ns = (uint64_t)((double)units * 1e9 / (double)gt_clock_hz());
    int u = 0;
    while (u < 3 && ns < units_of[u].ns)
        u++;
    uint64_t hundredths = ns % units_of[u].ns * 100 / units_of[u].ns;
    gt_strbuf_decimal(t, ns / units_of[u].ns);
    if (units_of[u].ns > 1) {
        gt_strbuf_add(t, hundredths < 10 ? ".0" : ".");
        gt_strbuf_decimal(t, hundredths);
    }
    gt_strbuf_add(t, units_of[u].name);
}

static void describe(struct gt_strbuf *t, const struct gt_hold *hold, uint64_t units)
{
    put_time(t, units);
    if (hold->longer)
        gt_strbuf_add(t, GT_HELD_LONGER);
    if (hold->spent < units / 10)
        return;
    gt_strbuf_add(t, ", of it ");
    put_time(t, hold->spent);
    gt_strbuf_add(t, " in ");
    gt_strbuf_add(t, hold->longest > hold->spent / 2 ? gt_real_name(hold->longest_hook)
                                                     : "waits and calls");
}

static void write_log(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold,
                      uint64_t units)
{
    char text[128];
    struct gt_strbuf buf = gt_strbuf_start(text, sizeof text);
    describe(&buf, hold, units);
    struct gt_stack *stack = gt_capture(t, hook);
    uint64_t pc = gt_python_taker_pc(hold->pc, stack ? stack->pcs : NULL, stack ? stack->n : 0);
    struct gt_string *what =
        gt_held_hold(&t->w,
                     &(struct gt_lock_in_use){.at = hold->lock,
                                              .holder = GT_HOLDER_SELF,
                                              .epoch = (uint32_t)gt_modules_epoch(),
                                              .shared = hold->shared},
                     pc ? pc - 1 : 0);
    if (!what || !gt_writer_pin_texts(&t->w))
        return;
    uint64_t args[] = {0, gt_string_use(what, gt_writer_gen(&t->w)),
                       gt_texts_put(&t->w, text, (uint32_t)(buf.pos - text))};
    gt_ev_user(&t->w, GT_EV_USER_LOG, args, stack);
    gt_writer_unpin(&t->w);
}

void gt_hot_tell(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold)
{
    write_log(t, hook, hold, gt_clock_now() - hold->since);
}

static void give_up(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold, bool awaited,
                    uint64_t until)
{
    uint64_t units = until > hold->since ? until - hold->since : 0;
    uint64_t least = awaited && gt_options.hold_min > SHORT_NS ? SHORT_NS : gt_options.hold_min;
    if (!gt_muted() && units >= gt_clock_units(least))
        write_log(t, hook, hold, units);
    if (units >= gt_clock_units(SHORT_NS))
        t->holds.brief = 0;
    else if (!hold->longer)
        t->holds.brief++;
    cool(hold->lock, until);
}

/* Since when the thread has the lock, 0 if that is not timed; NULL: no hold is noted. */
static const uint64_t *since_of(struct gt_holds *holds, const void *lock)
{
    if (holds->light.lock == lock)
        return &holds->light.since;
    const struct gt_hold *hold = find(holds, lock);
    return hold ? &hold->since : NULL;
}

bool gt_hot_until(const void *lock, uint64_t *until)
{
    struct gt_thread *t = gt_self;
    if (!t)
        return false;
    const uint64_t *since = since_of(&t->holds, lock);
    bool light = since == &t->holds.light.since;
    if (light && !*since && gt_hot_passes(lock))
        return false;
    bool awaited = gt_hot_is_waited_for(lock, t->w.m);
    *until = light || awaited || (since && *since) ? gt_clock_now() : 0;
    bool is_short = light && *until - *since < gt_clock_units(SHORT_NS);
    return (since || awaited) && !(is_short && gt_hot_passes(lock));
}

void gt_hot_given_up(uint32_t hook, const void *lock, bool awaited, uint64_t until, bool shared)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    keep_light(&t->holds);
    struct gt_hold *noted = find(&t->holds, lock), unknown;
    uint64_t waited = waited_since(lock, t->w.m);
    if (noted)
        drop(&t->holds, noted);
    if (!noted || is_over(noted)) {
        unknown = (struct gt_hold){.lock = lock};
        noted = &unknown;
    }
    if (!noted->since || (noted->longer && waited && waited < noted->since)) {
        noted->since = waited;
        noted->longer = true;
    }
    noted->shared = shared;
    if (noted->since && until)
        give_up(t, hook, noted, awaited, until);
    gt_thread_leave(t);
}

bool gt_hot_noted(struct gt_thread *t, const void *lock, struct gt_hold *hold)
{
    keep_light(&t->holds);
    struct gt_hold *noted = find(&t->holds, lock);
    if (!noted)
        return false;
    drop(&t->holds, noted);
    *hold = *noted;
    return !is_over(hold);
}

void gt_hot_ends(struct gt_thread *t, uint32_t hook, const struct gt_hold *hold, uint64_t until)
{
    give_up(t, hook, hold, true, until);
}

void gt_hot_forget(const void *lock)
{
    struct gt_thread *t = gt_hot_is(lock) ? gt_thread_enter() : NULL;
    if (!t)
        return;
    waited_since(lock, t->w.m);
    gt_thread_leave(t);
}
