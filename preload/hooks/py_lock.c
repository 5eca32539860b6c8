/* See py_lock.h. */
#include "py_lock.h"

#include "encoder/base/sparse.h"
#include "preload/shared/lock_kind.h"
#include "preload/stacks/pymutex.h"
#include "preload/stacks/python_stack.h"
#include "preload/waits/hot.h"

/*
 * When a queued thread was last let in, by the locks of a slot of the registry. If another lock of
 * the slot lets one in, less is known than could be.
 */
static _Atomic uint64_t passed[GT_REGISTRY_SLOTS] GT_SPARSE;

struct gt_wait gt_py_lock_begin(enum gt_hook hook, const sem_t *sem, const void *lock,
                                const struct gt_timeout *end)
{
    bool rlock = gt_pymutex_is_rlock(lock);
    return gt_wait_begin_for(
        &(struct gt_wait_for){.hook = hook,
                              .reason = GT_REASON_SYNC,
                              .addr = sem,
                              .kind = rlock ? GT_LOCK_PYRLOCK : GT_LOCK_PYMUTEX,
                              .lock = {.at = lock},
                              .final = true,
                              .timed = gt_timeout_is_set(end),
                              .end = end});
}

void gt_py_lock_waited(const sem_t *sem, const void *lock, const void *pc)
{
    if (!gt_pymutex_is_given(sem) || !gt_pymutex_is_awaited(lock))
        return;
    const void *taker = gt_python_taker(pc);
    gt_hot_taken(lock, gt_clock_now(), taker == pc ? NULL : taker);
}

/* Since when the waiter at the semaphore waits for a lock of Python's; 0: no such wait is known. */
static uint64_t waits_since(const sem_t *sem, bool *rlock)
{
    uint64_t since = 0;
    if (!gt_registry_any(sem) || !gt_registry_lock(sem))
        return 0;
    const struct gt_waiter *w = gt_registry_after(sem, NULL);
    if (w && (w->kind == GT_LOCK_PYMUTEX || w->kind == GT_LOCK_PYRLOCK)) {
        since = w->since;
        *rlock = w->kind == GT_LOCK_PYRLOCK;
    }
    gt_registry_unlock(sem);
    return since;
}

/* since: when the waiter began to wait. before: when a queued thread was last let in. */
static bool find_hold(struct gt_thread *t, const void *lock, uint64_t since, uint64_t before,
                      bool rlock, struct gt_hold *hold)
{
    if (gt_hot_noted(t, lock, hold) && hold->since >= before && hold->since >= since) {
        hold->since = before; /* then the thread was given the lock */
        return before;
    }
    const void *leaver = gt_python_leaver();
    *hold = (struct gt_hold){.lock = lock, .since = since, .longer = true, .pc = (uintptr_t)leaver};
    return before <= since && (rlock || leaver);
}

void gt_py_lock_passed(enum gt_hook hook, const sem_t *sem, const void *lock)
{
    bool rlock = false;
    struct gt_thread *t = gt_thread_enter();
    uint64_t now = gt_clock_now();
    uint64_t before = atomic_exchange(&passed[gt_registry_slot(lock)], now);
    if (!t)
        return;
    struct gt_hold hold;
    uint64_t since = waits_since(sem, &rlock);
    if (since && find_hold(t, lock, since, before, rlock, &hold))
        gt_hot_ends(t, hook, &hold, now);
    gt_thread_leave(t);
}
