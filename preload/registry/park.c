/* See park.h. */
#include "park.h"

#include "encoder/base/clock.h"
#include "encoder/base/fetch.h"
#include "encoder/base/glibc.h"
#include "encoder/thread/events.h"
#include "encoder/thread/held.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "preload/shared/lock_kind.h"

static bool block(struct gt_writer *w, const struct gt_wait_for *what, struct gt_stack *stack,
                  bool at_once)
{
    bool blocked = false;
    bool told = what->lock.at && !gt_gen_is_mute(gt_writer_gen(w));
    struct gt_string *lock = told ? gt_held_string(w, &what->lock) : NULL;
    if (gt_writer_pin_how(w, at_once)) {
        if (lock)
            gt_ev_lock(w, what->since, lock, stack);
        blocked = gt_ev_go_block(w, what->since, what->reason, stack);
        gt_writer_unpin(w);
    }
    return blocked;
}

static void describe(struct gt_parking *p, struct gt_writer *w, const struct gt_wait_for *what)
{
    p->waiter.g = &w->g;
    p->waiter.mutex = what->mutex;
    p->waiter.relock = what->mutex ? &p->relock : NULL;
    p->waiter.bits = what->bits;
    /* Once woken, a condition variable's waiter waits only for its mutex, or for a CPU. */
    p->waiter.final = what->final || what->mutex;
    p->waiter.kind = (uint8_t)what->kind;
    p->waiter.timed = what->timed;
    p->shared = what->lock.shared;
    p->took = false;
    p->relock.kind = GT_LOCK_MUTEX;
    p->relock.again = true;
}

bool gt_park_forget(struct gt_parking *p, int64_t patience_ns)
{
    return (!gt_registry_has(&p->waiter) || gt_registry_remove(&p->waiter, p->took, patience_ns)) &&
           (!gt_registry_has(&p->relock) || gt_registry_remove(&p->relock, p->took, patience_ns));
}

bool gt_unpark(struct gt_writer *w, struct gt_parking *p, int64_t patience_ns)
{
    if (!gt_park_forget(p, patience_ns) || !gt_writer_pin(w))
        return false;
    gt_ev_go_resume(w, w->g.wait_stack);
    gt_writer_unpin(w);
    return true;
}

/*
 * Locks the registry once w has room to write. If the disk cannot keep up, w's thread waits here:
 * with the registry locked, all other threads would wait, too.
 */
static bool lock_with_room(struct gt_writer *w, const void *addr)
{
    if (!gt_writer_pin(w))
        return false;
    gt_writer_unpin(w);
    return gt_registry_lock(addr);
}

/*
 * Whether target is the only waiter of its condition variable, in the registry and by libc's count.
 * Then libc can wake no other thread than target's, which is asleep.
 */
static bool is_alone(const struct gt_waiter *target)
{
    return target->kind == GT_LOCK_COND && !target->woken && !target->next && !target->prev &&
           gt_glibc_cond_flags((const void *)target->addr) >> GT_COND_WAITERS_SHIFT == 1;
}

/* Ends one wait in the trace; the registry is locked at its address. */
static void wake_locked(struct gt_writer *w, struct gt_waiter *target, bool all,
                        struct gt_stack *stack)
{
    bool done = false;
    uint64_t at = 0;
    while (!done && gt_writer_pin_at_once(w)) {
        uint64_t before = w->last;
        done = target->woken ? gt_ev_go_unblock_again(w, target->g, stack)
                             : gt_ev_go_unblock(w, target->g, stack);
        at = w->last > before ? w->last : 0;
        gt_writer_unpin(w);
    }
    at = at ? at : gt_clock_now(); /* nothing was written */
    if (target->final && (all || is_alone(target)))
        gt_registry_release(target, at);
    else
        gt_registry_woken(target, at);
}

/*
 * Prefetches the waiter after the target while the target is woken: of thousands of waiters none is
 * in a cache. there: that waiter was prefetched before, so the memory it points to is prefetched,
 * too.
 */
static void fetch_after(const struct gt_waiter *target, bool there)
{
    const struct gt_waiter *next = target->next;
    gt_fetch(next, sizeof *next);
    if (!next || !there)
        return;
    gt_fetch(next->g, sizeof *next->g);
    gt_fetch(next->relock, sizeof *next);
    gt_fetch(next->next, sizeof *next);
}

static uint32_t wake_some_locked(struct gt_writer *w, const struct gt_wake *wake,
                                 struct gt_stack *stack)
{
    uint32_t bits = wake->bits ? wake->bits : UINT32_MAX, n = 0;
    bool all = wake->max == UINT32_MAX && bits == UINT32_MAX;
    uint64_t now = 0;
    bool again = !wake->asleep && gt_registry_may_sleep_again(wake->addr, &now);
    uint64_t at = again ? now : 0; /* 0: no woken waiter sleeps again */
    struct gt_waiter *target;
    while (n < wake->max && (target = gt_registry_next(wake->addr, bits, at))) {
        fetch_after(target, n > 0);
        wake_locked(w, target, all, stack);
        n++;
    }
    return n;
}

uint32_t gt_park_wake(struct gt_writer *w, const struct gt_wake *wake, struct gt_stack *stack)
{
    uint32_t n = 0;
    if (lock_with_room(w, wake->addr)) {
        n = wake_some_locked(w, wake, stack);
        gt_registry_unlock(wake->addr);
    }
    return n;
}

/*
 * Ends a wait and begins the next one for the waiter. It fails while the waiter's thread enters a
 * generation, and is tried again; after TIMES the waiter's old wait just goes on.
 */
static void pass_locked(struct gt_writer *w, struct gt_waiter *target, struct gt_stack *stack,
                        struct gt_stack *then)
{
    enum { TIMES = 1000 };
    bool done = false;
    for (int i = 0; i < TIMES && !done && gt_writer_pin_at_once(w); i++) {
        done = gt_ev_go_unblock_and_wait(w, target->g, stack, then);
        gt_writer_unpin(w);
    }
}

void gt_park_pass(struct gt_writer *w, const void *from, const void *to, struct gt_stack *stack,
                  struct gt_stack *then)
{
    if (!lock_with_room(w, from))
        return;
    for (struct gt_waiter *target = NULL; (target = gt_registry_after(from, target));)
        pass_locked(w, target, stack, then);
    gt_registry_unlock(from);
    gt_registry_move(from, to, UINT32_MAX);
}

/*
 * Which thread is the last at a barrier is decided under the registry's lock. So exactly one of the
 * threads that arrive together takes itself for the last: it does not wait, and wakes the others.
 */
static bool arrive_locked(struct gt_writer *w, struct gt_parking *p, const struct gt_wait_for *what,
                          struct gt_stack *stack)
{
    if (gt_registry_asleep(what->addr) + 1 >= what->count) {
        wake_some_locked(w, &(struct gt_wake){.addr = what->addr, .max = UINT32_MAX}, stack);
        return false;
    }
    if (!block(w, what, stack, true))
        return false;
    describe(p, w, what);
    gt_registry_add_locked(&p->waiter, what->addr, what->since);
    return true;
}

static bool arrive(struct gt_writer *w, struct gt_parking *p, const struct gt_wait_for *what,
                   struct gt_stack *stack)
{
    if (!lock_with_room(w, what->addr))
        return false;
    bool parked = arrive_locked(w, p, what, stack);
    gt_registry_unlock(what->addr);
    return parked;
}

bool gt_park(struct gt_writer *w, struct gt_parking *p, const struct gt_wait_for *what,
             struct gt_stack *stack)
{
    if (what->count)
        return arrive(w, p, what, stack);
    if (!block(w, what, stack, false))
        return false;
    if (what->addr) {
        describe(p, w, what);
        gt_registry_add(&p->waiter, what->addr, what->since);
    }
    return true;
}
