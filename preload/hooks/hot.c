/* See hot.h. */
#include "hot.h"

#include "encoder/base/strbuf.h"
#include "encoder/events.h"
#include "preload/options.h"
#include "preload/stacks/capture.h"
#include "preload/thread.h"
#include "symbolize/modules.h"

/*
 * A shorter hold explains no wait, and writing of it, with the lock held, would take as long: in a
 * server whose locks change hands 20,000 times a second that was felt.
 */
enum { SHORT_NS = 10000 };

/* Nobody has waited for longer than that: it is hot no more. */
#define COOLS_NS UINT64_C(10000000000)

/* By slot. Who had the lock when it became hot has not noted when that began. */
static struct heat {
    _Atomic uint64_t touched; /* when somebody began to wait */
    _Atomic uint64_t cooled;  /* when it was hot last: what was noted before may be over */
    _Atomic uint64_t since;   /* of what follows */
    _Atomic(const void *) lock;
    _Atomic uint32_t owner; /* as the kernel numbers threads; 0: it has given it up */
} heats[GT_REGISTRY_SLOTS];

static struct heat *heat_of(const void *lock)
{
    return &heats[gt_registry_slot(lock)];
}

void gt_hot_touch(const void *lock, uint64_t now, uint32_t owner)
{
    struct heat *h = heat_of(lock);
    _Atomic uint32_t *word = &gt_registry_count[gt_registry_slot(lock)];
    atomic_store_explicit(&h->touched, now, memory_order_relaxed);
    if (gt_hot_is(lock) || atomic_fetch_or(word, GT_REGISTRY_HOT) & GT_REGISTRY_HOT)
        return;
    atomic_store_explicit(&h->since, now, memory_order_relaxed);
    atomic_store_explicit(&h->lock, lock, memory_order_relaxed);
    atomic_store_explicit(&h->owner, owner, memory_order_release);
}

static void cool(const void *lock, uint64_t now)
{
    uint64_t last = atomic_load_explicit(&heat_of(lock)->touched, memory_order_relaxed);
    if (now <= last || now - last <= gt_clock_units(COOLS_NS))
        return;
    atomic_store(&heat_of(lock)->cooled, now);
    atomic_fetch_and(&gt_registry_count[gt_registry_slot(lock)], ~GT_REGISTRY_HOT);
}

/* Whether the thread has had the lock since before it became hot: then from when on. */
static bool had_before(const void *lock, uint32_t tid, struct gt_hold *hold)
{
    struct heat *h = heat_of(lock);
    uint32_t owner = atomic_load_explicit(&h->owner, memory_order_acquire);
    if (owner != tid || atomic_load_explicit(&h->lock, memory_order_relaxed) != lock)
        return false;
    hold->since = atomic_load_explicit(&h->since, memory_order_relaxed);
    hold->lock = lock;
    return atomic_compare_exchange_strong(&h->owner, &owner, 0);
}

/* The thread's hold of that lock, or NULL. */
static struct gt_hold *find(struct gt_holds *holds, const void *lock)
{
    for (int i = 0; i < GT_HOLDS_MAX; i++) {
        if (holds->hold[i].lock == lock)
            return &holds->hold[i];
    }
    return NULL;
}

void gt_hot_taken(const void *lock, const void *pc)
{
    struct gt_thread *t = gt_muted() ? NULL : gt_thread_enter();
    if (!t)
        return;
    struct gt_holds *holds = &t->holds;
    struct gt_hold *hold = find(holds, lock);
    hold = hold ? hold : find(holds, NULL);
    hold = hold ? hold : &holds->hold[holds->next++ % GT_HOLDS_MAX];
    *hold = (struct gt_hold){.lock = lock, .since = gt_clock_now(), .pc = (uintptr_t)pc};
    gt_thread_leave(t);
}

void gt_hot_spent(struct gt_holds *holds, uint32_t hook, uint64_t since, uint64_t until)
{
    for (int i = 0; i < GT_HOLDS_MAX; i++) {
        struct gt_hold *hold = &holds->hold[i];
        if (!hold->lock || hold->since > since || since >= until)
            continue;
        hold->spent += until - since;
        if (until - since > hold->longest) {
            hold->longest = until - since;
            hold->longest_hook = hook;
        }
    }
}

/* Four digits are enough to be within 1 %. */
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
    if (!hold->pc)
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
    struct gt_string *what =
        gt_held_hold(&t->w, hold->lock, hold->pc ? hold->pc - 1 : 0, (uint32_t)gt_modules_epoch());
    if (!what || !gt_texts_enter(&t->w))
        return;
    uint64_t args[] = {0, gt_string_use(what, gt_writer_gen(&t->w)),
                       gt_texts_put(&t->w, text, (uint32_t)(buf.pos - text))};
    gt_ev_user(&t->w, GT_EV_USER_LOG, args, stack);
    gt_writer_unpin(&t->w);
}

static void give_up(struct gt_thread *t, uint32_t hook, struct gt_hold *hold, bool awaited)
{
    uint64_t now = gt_clock_now(), units = now > hold->since ? now - hold->since : 0;
    uint64_t least = awaited && gt_options.hold_min > SHORT_NS ? SHORT_NS : gt_options.hold_min;
    if (!gt_muted() && units >= gt_clock_units(least))
        write_log(t, hook, hold, units);
    cool(hold->lock, now);
    hold->lock = NULL;
}

void gt_hot_given_up(uint32_t hook, const void *lock, bool awaited)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    struct gt_hold before = {.lock = NULL}, *hold = find(&t->holds, lock);
    uint64_t cooled = atomic_load_explicit(&heat_of(lock)->cooled, memory_order_relaxed);
    if (hold && hold->since <= cooled) {
        hold->lock = NULL;
        hold = NULL;
    }
    if (!hold && had_before(lock, t->w.m, &before))
        hold = &before;
    if (hold)
        give_up(t, hook, hold, awaited);
    gt_thread_leave(t);
}
