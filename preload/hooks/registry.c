/* See registry.h. */
#include "registry.h"

#include "encoder/base/sparse.h"
#include "encoder/writer.h"

#include <string.h>

#define SHARDS 1024u

_Atomic uint32_t gt_registry_count[GT_REGISTRY_SLOTS] GT_SPARSE;

/* Waiters in the order in which they are to be woken. */
struct line {
    struct gt_waiter *first, *last;
};

/*
 * Two lines, so that nobody who looks for a waiter that sleeps passes thousands that were woken and
 * have not run yet: waking all who wait at an address is linear.
 */
static struct shard {
    struct gt_lock lock;
    uint64_t turns;      /* given to waiters so far, see struct gt_waiter */
    struct line asleep;  /* not woken */
    struct line woken;   /* by when */
    const void *counted; /* the address of which `sleepers` is the number of waiters not woken */
    uint32_t sleepers;
} shards[SHARDS] GT_SPARSE;

static _Atomic bool used; /* somebody has waited: there is something to see in the shards */

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

static struct line *line_of(struct shard *s, const struct gt_waiter *w)
{
    return w->woken ? &s->woken : &s->asleep;
}

static void append_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    w->turn = ++s->turns;
    w->next = NULL;
    w->prev = line->last;
    if (line->last)
        line->last->next = w;
    else
        line->first = w;
    line->last = w;
}

/* Before all others of both lines. */
static void prepend_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    w->turn = 0;
    w->prev = NULL;
    w->next = line->first;
    if (line->first)
        line->first->prev = w;
    else
        line->last = w;
    line->first = w;
}

static void unlink_locked(struct shard *s, struct gt_waiter *w)
{
    struct line *line = line_of(s, w);
    if (w->prev)
        w->prev->next = w->next;
    else
        line->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        line->last = w->prev;
}

static struct slot *slot_of(const void *addr)
{
    return &slots[gt_registry_slot(addr)];
}

static void add_to(_Atomic uint32_t *n, uint32_t by)
{
    atomic_fetch_add_explicit(n, by, memory_order_relaxed);
}

/* One waiter more, or less, that was not woken. The shard is locked. */
static void count_asleep(const void *addr, uint32_t by)
{
    struct shard *s = shard_of(addr);
    add_to(&slot_of(addr)->asleep, by);
    if (s->counted == addr)
        s->sleepers += by;
}

/* One waiter more, or less, at addr. The shard is locked. */
static void count(const void *addr, uint32_t by, bool asleep)
{
    add_to(&gt_registry_count[gt_registry_slot(addr)], by);
    if (asleep)
        count_asleep(addr, by);
}

void gt_registry_add_locked(struct gt_waiter *w, const void *addr, uint64_t now)
{
    w->addr = addr;
    w->since = now;
    w->woken = 0;
    w->outrun = false;
    append_locked(shard_of(addr), w);
    count(addr, 1, true);
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        atomic_store_explicit(&used, true, memory_order_relaxed);
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

/* To the end of those that were woken. */
static void set_woken(struct shard *s, struct gt_waiter *w, uint64_t now)
{
    struct slot *slot = slot_of(w->addr);
    unlink_locked(s, w);
    if (!w->woken)
        count_asleep(w->addr, -1u);
    w->woken = now;
    w->outrun = false;
    append_locked(s, w);
    uint64_t at = asleep_again_at(w);
    bool alone = !s->asleep.first && s->woken.first == s->woken.last;
    if (alone || at < atomic_load_explicit(&slot->again, memory_order_relaxed))
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

/*
 * Locks the shard where w is: gt_registry_move may be taking it elsewhere, and gt_registry_release
 * out. false: the lock was not to be had. *s: NULL if w is out.
 */
static bool lock_shard_of(struct gt_waiter *w, int64_t patience_ns, struct shard **s)
{
    while (gt_registry_has(w)) {
        const void *addr = __atomic_load_n(&w->addr, __ATOMIC_RELAXED);
        *s = shard_of(addr);
        if (!gt_lock_within(&(*s)->lock, GT_RANK_SHARD, patience_ns))
            return false;
        if (w->addr == addr)
            return true;
        gt_unlock(&(*s)->lock);
    }
    *s = NULL;
    return true;
}

/* Who is woken at once has not slept: it was faster than others, which is no mistake of ours. */
static bool slept_on(const struct gt_waiter *w)
{
    return !w->woken && !w->timed && gt_clock_now() > w->since + gt_clock_units(WAKING_NS);
}

/* Whoever was woken last is the one that w was taken for. */
static void hand_back(struct shard *s, const void *addr)
{
    struct gt_waiter *last = s->woken.last;
    while (last && (last->addr != addr || last->outrun))
        last = last->prev;
    if (!last)
        return;
    unlink_locked(s, last);
    last->outrun = true;
    prepend_locked(s, last);
    atomic_store_explicit(&slot_of(addr)->again, 0, memory_order_relaxed);
}

bool gt_registry_remove(struct gt_waiter *w, int64_t patience_ns)
{
    struct shard *s;
    if (!lock_shard_of(w, patience_ns, &s))
        return false;
    if (!s)
        return true;
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
    struct gt_waiter *next, *last = source->asleep.last;
    for (struct gt_waiter *w = source->asleep.first; w && max; w = next) {
        next = w == last ? NULL : w->next;
        if (w->addr != from)
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

/* Of those that were woken nobody of the slot sleeps now: when may that be so next? */
static void set_again(const struct shard *s, uint32_t slot)
{
    uint64_t again = UINT64_MAX;
    for (const struct gt_waiter *w = s->woken.first; w; w = w->next) {
        uint64_t at = asleep_again_at(w);
        if (gt_registry_slot(w->addr) == slot && at < again)
            again = at;
    }
    atomic_store_explicit(&slots[slot].again, again, memory_order_relaxed);
}

static bool is_at(const struct gt_waiter *w, const void *addr, uint32_t bits)
{
    return w->addr == addr && (!w->bits || w->bits & bits);
}

/* The first of those that were woken and must have gone back to sleep. */
static struct gt_waiter *first_asleep_again(const void *addr, uint32_t bits, uint64_t now)
{
    const struct shard *s = shard_of(addr);
    if (now < atomic_load_explicit(&slot_of(addr)->again, memory_order_relaxed))
        return NULL;
    struct gt_waiter *w = s->woken.first;
    while (w && (!is_at(w, addr, bits) || now < asleep_again_at(w)))
        w = w->next;
    if (!w)
        set_again(s, gt_registry_slot(addr));
    return w;
}

struct gt_waiter *gt_registry_next(const void *addr, uint32_t bits, uint64_t now)
{
    struct gt_waiter *w = shard_of(addr)->asleep.first, *again;
    while (w && !is_at(w, addr, bits))
        w = w->next;
    again = first_asleep_again(addr, bits, now);
    return again && (!w || again->turn < w->turn) ? again : w;
}

struct gt_waiter *gt_registry_after(const void *addr, struct gt_waiter *last)
{
    struct gt_waiter *w = last ? last->next : shard_of(addr)->asleep.first;
    while (w && w->addr != addr)
        w = w->next;
    return w;
}

uint32_t gt_registry_asleep(const void *addr)
{
    struct shard *s = shard_of(addr);
    if (s->counted != addr) {
        s->counted = addr;
        s->sleepers = 0;
        for (struct gt_waiter *w = NULL; (w = gt_registry_after(addr, w));)
            s->sleepers++;
    }
    return s->sleepers;
}

void gt_registry_each(void (*fn)(const struct gt_waiter *waiter))
{
    enum { PATIENCE_NS = 1000000 };
    if (!atomic_load_explicit(&used, memory_order_relaxed))
        return;
    for (struct shard *s = shards; s < shards + SHARDS; s++) {
        if ((!s->asleep.first && !s->woken.first) ||
            !gt_lock_within(&s->lock, GT_RANK_SHARD, PATIENCE_NS))
            continue;
        for (const struct gt_waiter *w = s->asleep.first; w; w = w->next)
            fn(w);
        for (const struct gt_waiter *w = s->woken.first; w; w = w->next)
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
    if (w->relock)
        await_mutex(s, w, now);
}

void gt_registry_release(struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->addr);
    unlink_locked(s, w);
    count(w->addr, -1u, !w->woken);
    if (w->relock)
        await_mutex(s, w, now);
    /* release: w's thread, which looks for that without the lock, is then alone with w. */
    __atomic_store_n(&w->addr, NULL, __ATOMIC_RELEASE);
}

void gt_registry_after_fork(void)
{
    if (!atomic_load(&used))
        return;
    memset(shards, 0, sizeof shards);
    memset((void *)gt_registry_count, 0, sizeof gt_registry_count);
    memset(slots, 0, sizeof slots);
}
