/* See wait.h. The order of steps is rule 4 of encoder/writer.h. */
#include "wait.h"

#include "capture.h"
#include "heap.h"
#include "process.h"

void gt_wait_forget(struct gt_thread *t)
{
    if (t->waiter.addr)
        gt_registry_remove(&t->waiter);
    if (t->relock.addr)
        gt_registry_remove(&t->relock);
}

static struct gt_wait begin(enum gt_hook hook, enum gt_reason reason, const void *addr,
                            const void *mutex)
{
    struct gt_wait wait = {NULL, NULL};
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return wait;
    gt_heap_settle(t);
    uint64_t since = gt_clock_now(); /* taking the stack is part of the call, as a wait is */
    wait.stack = gt_capture(hook);
    if (gt_writer_enter(&t->w)) {
        if (gt_ev_go_block(&t->w, since, reason, wait.stack))
            wait.thread = t;
        gt_writer_leave(&t->w);
    }
    if (wait.thread && addr) {
        gt_wait_forget(t); /* of a wait left by longjmp */
        t->waiter.g = &t->w.g;
        t->waiter.mutex = mutex;
        t->waiter.relock = mutex ? &t->relock : NULL;
        gt_registry_add(&t->waiter, addr, since);
    }
    gt_thread_leave(t);
    return wait;
}

struct gt_wait gt_wait_begin(enum gt_hook hook, enum gt_reason reason, const void *addr)
{
    return begin(hook, reason, addr, NULL);
}

struct gt_wait gt_wait_begin_cond(enum gt_hook hook, const void *cond, const void *mutex)
{
    return begin(hook, GT_REASON_COND, cond, mutex);
}

void gt_wait_end(struct gt_wait *wait)
{
    struct gt_thread *t = wait->thread;
    if (!t)
        return;
    t->inside = 1;
    gt_wait_forget(t);
    if (gt_writer_enter(&t->w)) {
        gt_ev_go_resume(&t->w, wait->stack);
        gt_writer_leave(&t->w);
    }
    gt_thread_leave(t);
    gt_process_check_queue();
}

/* Ends one wait in the trace; the registry is locked at its address. */
static void wake_locked(struct gt_thread *t, struct gt_waiter *target, struct gt_stack *stack)
{
    bool done = false;
    uint64_t now = gt_clock_now();
    while (!done && gt_writer_enter(&t->w)) {
        done = target->woken ? gt_ev_go_unblock_again(&t->w, target->g, stack)
                             : gt_ev_go_unblock(&t->w, target->g, stack);
        gt_writer_leave(&t->w);
    }
    gt_registry_woken(target, now);
}

void gt_wake_slow(enum gt_hook hook, const void *addr, bool all)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    struct gt_stack *stack = gt_capture(hook);
    gt_registry_lock(addr);
    uint64_t now = gt_clock_now();
    struct gt_waiter *target = gt_registry_next(addr, now);
    while (target) {
        wake_locked(t, target, stack);
        target = all ? gt_registry_next(addr, now) : NULL;
    }
    gt_registry_unlock(addr);
    gt_thread_leave(t);
}
