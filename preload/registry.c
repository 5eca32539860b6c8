/* See registry.h. */
#include "registry.h"

#include "../encoder/clock.h"

#include <string.h>

#define SHARDS 1024u

_Atomic uint32_t gt_registry_count[GT_REGISTRY_SLOTS];

static struct shard {
    struct gt_lock lock;
    struct gt_waiter *first, *last;
} shards[SHARDS];

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

static void add_locked(struct shard *s, struct gt_waiter *w, const void *addr, uint64_t now)
{
    w->addr = addr;
    w->since = now;
    w->woken = 0;
    append_locked(s, w);
    atomic_fetch_add_explicit(&gt_registry_count[gt_registry_slot(addr)], 1, memory_order_relaxed);
}

void gt_registry_add(struct gt_waiter *w, const void *addr, uint64_t now)
{
    struct shard *s = shard_of(addr);
    gt_lock(&s->lock);
    add_locked(s, w, addr, now);
    gt_unlock(&s->lock);
}

void gt_registry_remove(struct gt_waiter *w)
{
    struct shard *s = shard_of(w->addr);
    gt_lock(&s->lock);
    unlink_locked(s, w);
    atomic_fetch_sub_explicit(&gt_registry_count[gt_registry_slot(w->addr)], 1,
                              memory_order_relaxed);
    w->addr = NULL;
    gt_unlock(&s->lock);
}

void gt_registry_lock(const void *addr)
{
    gt_lock(&shard_of(addr)->lock);
}

void gt_registry_unlock(const void *addr)
{
    gt_unlock(&shard_of(addr)->lock);
}

/*
 * A wake-up takes tens of microseconds. Beyond that the bound grows with the wait so far: a long
 * wait stays exact to 1 %, and its number of vain wake-ups in the trace logarithmic.
 */
#define WAKING_NS 50000

static bool went_back_to_sleep(const struct gt_waiter *w, uint64_t now)
{
    uint64_t awake = now > w->woken ? now - w->woken : 0;
    return awake >= gt_clock_units(WAKING_NS) && awake >= (now - w->since) / 128;
}

struct gt_waiter *gt_registry_next(const void *addr, uint64_t now)
{
    struct gt_waiter *w = shard_of(addr)->first;
    while (w && (w->addr != addr || (w->woken && !went_back_to_sleep(w, now))))
        w = w->next;
    return w;
}

/*
 * The mutex's shard is a second lock, taken in no order: if it is not free at once the waiter just
 * stays "runnable" until it has the mutex.
 */
static void await_mutex(struct shard *held, struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->mutex);
    if (w->relock->addr || (s != held && !gt_trylock(&s->lock)))
        return;
    w->relock->g = w->g;
    add_locked(s, w->relock, w->mutex, now);
    w->relock->woken = now;
    if (s != held)
        gt_unlock(&s->lock);
}

void gt_registry_woken(struct gt_waiter *w, uint64_t now)
{
    struct shard *s = shard_of(w->addr);
    w->woken = now;
    unlink_locked(s, w);
    append_locked(s, w);
    if (w->relock)
        await_mutex(s, w, now);
}

void gt_registry_after_fork(void)
{
    memset(shards, 0, sizeof shards);
    memset((void *)gt_registry_count, 0, sizeof gt_registry_count);
}
