/* See registry.h. */
#include "registry.h"

#include "encoder/base/sparse.h"
#include "encoder/writer.h"

#include <string.h>

#define SHARDS 1024u

_Atomic uint32_t gt_registry_count[GT_REGISTRY_SLOTS] GT_SPARSE;

static struct shard {
    struct gt_lock lock;
    struct gt_waiter *first, *last;
} shards[SHARDS] GT_SPARSE;

/* Changed under the lock of the shard, of which a slot is a part. */
static struct slot {
    _Atomic uint32_t asleep; /* waiters that were not woken */
    _Atomic uint64_t again;  /* when one of the others may be asleep again; or some time before */
} slots[GT_REGISTRY_SLOTS] GT_SPARSE;

/* In hooks; false is counted. */
static bool lock_within(struct shard *s)
{
    bool locked = gt_lock_within(&s->lock, GT_RANK_SHARD, GT_HOOK_PATIENCE_NS);
    if (!locked)
        gt_lost();
    return locked;
}

static struct shard *shard_of(const void *addr)
{
    return &shards[gt_registry_slot(addr) % SHARDS];
}

static void append_locked(struct shard *s, struct gt_waiter *w)
{
    w->next = NULL;
    w->prev = s->last;
    if (s->last)
        s->last->next = w;
    else
        s->first = w;
    s->last = w;
}

static void prepend_locked(struct shard *s, struct gt_waiter *w)
{
    w->prev = NULL;
    w->next = s->first;
    if (s->first)
        s->first->prev = w;
    else
        s->last = w;
    s->first = w;
}

static void unlink_locked(struct shard *s, struct gt_waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        s->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        s->last = w->prev;
}

static struct slot *slot_of(const void *addr)
{
    return &slots[gt_registry_slot(addr)];
}

static void add_to(_Atomic uint32_t *n, uint32_t by)
{
    atomic_fetch_add_explicit(n, by, memory_order_relaxed);
}

/* One waiter more, or less, at addr. */
static void count(const void *addr, uint32_t by, bool asleep)
{
    add_to(&gt_registry_count[gt_registry_slot(addr)], by);
    if (asleep)
        add_to(&slot_of(addr)->asleep, by);
}

void gt_registry_add_locked(struct gt_waiter *w, const void *addr, uint64_t now)
{
    w->addr = addr;
    w->since = now;
    w->woken = 0;
    w->outrun = false;
    append_locked(shard_of(addr), w);
    count(addr, 1, true);
}

/*
 * A wake-up takes tens of microseconds. Beyond that the bound grows with the wait so far: a long
 * wait stays exact to 1 %, and its number of vain wake-ups in the trace logarithmic.
 */
#define WAKING_NS 50000

/* When a waiter that was woken, and is still here, must have gone back to sleep. */
static uint64_t asleep_again_at(const struct gt_waiter *w)
{
    uint64_t waited = w->woken > w->since ? w->woken - w->since : 0;
    uint64_t waking = gt_clock_units(WAKING_NS);
    if (w->outrun)
        return 0;
    if (w->final)
        return UINT64_MAX;
    return w->woken + (waited / 127 > waking ? waited / 127 : waking);
}

static void set_woken(struct shard *s, struct gt_waiter *w, uint64_t now)
{
    struct slot *slot = slot_of(w->addr);
    if (!w->woken)
        add_to(&slot->asleep, -1u);
    w->woken = now;
    w->outrun = false;
    uint64_t at = asleep_again_at(w);
    if (s->first == s->last || at < atomic_load_explicit(&slot->again, memory_order_relaxed))
        atomic_store_explicit(&slot->again, at, memory_order_relaxed);
}

void gt_registry_add(struct gt_waiter *w, const void *addr, uint64_t now)
{
    struct shard *s = shard_of(addr);
    if (!lock_within(s))
        return;
    gt_registry_add_locked(w, addr, now);
    gt_unlock(&s->lock);
}

/* The shard where w is, locked, or NULL: gt_registry_move may be taking it elsewhere. */
static struct shard *lock_shard_of(struct gt_waiter *w, int64_t patience_ns)
{
    for (;;) {
        const void *addr = __atomic_load_n(&w->addr, __ATOMIC_RELAXED);
        struct shard *s = shard_of(addr);
        if (!gt_lock_within(&s->lock, GT_RANK_SHARD, patience_ns))
            return NULL;
        if (w->addr == addr)
            return s;
        gt_unlock(&s->lock);
    }
}

/* Who is woken at once has not slept: it was faster than others, which is no mistake of ours. */
static bool slept_on(const struct gt_waiter *w)
{
    return !w->woken && !w->timed && gt_clock_now() > w->since + gt_clock_units(WAKING_NS);
}

static void hand_back(struct shard *s, const void *addr)
{
    struct gt_waiter *last = NULL;
    for (struct gt_waiter *w = s->first; w; w = w->next) {
        if (w->addr == addr && w->woken && !w->outrun && (!last || w->woken > last->woken))
            last = w;
    }
    if (!last)
        return;
    last->outrun = true;
    unlink_locked(s, last);
    prepend_locked(s, last);
    atomic_store_explicit(&slot_of(addr)->again, 0, memory_order_relaxed);
}

bool gt_registry_remove(struct gt_waiter *w, int64_t patience_ns)
{
    struct shard *s = lock_shard_of(w, patience_ns);
    if (!s)
        return false;
    unlink_locked(s, w);
    count(w->addr, -1u, !w->woken);
    if (slept_on(w))
        hand_back(s, w->addr);
    w->addr = NULL;
    gt_unlock(&s->lock);
    return true;
}

/* In the order of addresses. */
static bool lock_both(struct shard *a, struct shard *b)
{
    struct shard *first = a < b ? a : b, *second = a < b ? b : a;
    if (!lock_within(first))
        return false;
    if (a == b || lock_within(second))
        return true;
    gt_unlock(&first->lock);
    return false;
}

void gt_registry_move(const void *from, const void *to, uint32_t max)
{
    struct shard *source = shard_of(from), *target = shard_of(to);
    if (!lock_both(source, target))
        return;
    struct gt_waiter *next, *last = source->last;
    for (struct gt_waiter *w = source->first; w && max; w = next) {
        next = w == last ? NULL : w->next;
        if (w->addr != from || w->woken)
            continue;
        unlink_locked(source, w);
        count(from, -1u, true);
        __atomic_store_n(&w->addr, to, __ATOMIC_RELAXED);
        append_locked(target, w);
        count(to, 1, true);
        max--;
    }
    if (source != target)
        gt_unlock(&source->lock);
    gt_unlock(&target->lock);
}

bool gt_registry_lock(const void *addr)
{
    return lock_within(shard_of(addr));
}

void gt_registry_unlock(const void *addr)
{
    gt_unlock(&shard_of(addr)->lock);
}

bool gt_registry_all_woken(const void *addr)
{
    return !atomic_load_explicit(&slot_of(addr)->asleep, memory_order_relaxed);
}

bool gt_registry_reaches(const void *addr)
{
    return !gt_registry_all_woken(addr) ||
           gt_clock_now() >= atomic_load_explicit(&slot_of(addr)->again, memory_order_relaxed);
}

/* Nobody of the slot is to be woken now: when is the next time that may be? */
static void set_again(const struct shard *s, uint32_t slot)
{
    uint64_t again = UINT64_MAX;
    for (const struct gt_waiter *w = s->first; w; w = w->next) {
        uint64_t at = w->woken ? asleep_again_at(w) : UINT64_MAX;
        if (gt_registry_slot(w->addr) == slot && at < again)
            again = at;
    }
    atomic_store_explicit(&slots[slot].again, again, memory_order_relaxed);
}

struct gt_waiter *gt_registry_next(const void *addr, uint32_t bits, uint64_t now)
{
    const struct shard *s = shard_of(addr);
    struct gt_waiter *w = s->first;
    while (w && (w->addr != addr || (w->bits && !(w->bits & bits)) ||
                 (w->woken && now < asleep_again_at(w))))
        w = w->next;
    if (!w)
        set_again(s, gt_registry_slot(addr));
    return w;
}

struct gt_waiter *gt_registry_after(const void *addr, struct gt_waiter *last)
{
    struct gt_waiter *w = last ? last->next : shard_of(addr)->first;
    while (w && (w->addr != addr || w->woken))
        w = w->next;
    return w;
}

uint32_t gt_registry_asleep(const void *addr)
{
    uint32_t n = 0;
    for (struct gt_waiter *w = NULL; (w = gt_registry_after(addr, w));)
        n++;
    return n;
}

void gt_registry_each(void (*fn)(const struct gt_waiter *waiter))
{
    enum { PATIENCE_NS = 1000000 };
    for (struct shard *s = shards; s < shards + SHARDS; s++) {
        if (!s->first || !gt_lock_within(&s->lock, GT_RANK_SHARD, PATIENCE_NS))
            continue;
        for (const struct gt_waiter *w = s->first; w; w = w->next)
            fn(w);
        gt_unlock(&s->lock);
    }
}

/* The mutex's shard is a second lock, in no order: if not free the waiter stays "runnable". */
static void await_mutex(struct shard *held, struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->mutex);
    if (w->relock->addr || (s != held && !gt_trylock(&s->lock, GT_RANK_SHARD)))
        return;
    w->relock->g = w->g;
    gt_registry_add_locked(w->relock, w->mutex, now);
    set_woken(s, w->relock, now);
    if (s != held)
        gt_unlock(&s->lock);
}

void gt_registry_woken(struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->addr);
    set_woken(s, w, now);
    unlink_locked(s, w);
    append_locked(s, w);
    if (w->relock)
        await_mutex(s, w, now);
}

void gt_registry_after_fork(void)
{
    memset(shards, 0, sizeof shards);
    memset((void *)gt_registry_count, 0, sizeof gt_registry_count);
    memset(slots, 0, sizeof slots);
}
