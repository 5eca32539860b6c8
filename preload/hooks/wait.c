/* See wait.h. */
#include "wait.h"

#include "slice.h"

#include "encoder/drain.h"
#include "encoder/call.h"
#include "encoder/events.h"
#include "preload/heap/heap.h"
#include "preload/options.h"
#include "preload/process.h"
#include "preload/stacks/capture.h"
#include "preload/stacks/layouts.h"
#include "preload/usage.h"
#include "symbolize/modules.h"

#define FRAME() ((uintptr_t)__builtin_frame_address(0))

enum { NO_YIELD = 0 }; /* for the time when one began */

/* What the goroutine was doing ends now, or the thread is stuck. */
static void resume(struct gt_thread *t, int64_t patience_ns)
{
    t->stuck = !gt_unpark(&t->w, &t->parking, patience_ns);
    if (!t->stuck)
        t->frame = 0;
}

struct gt_thread *gt_thread_unstick(struct gt_thread *t)
{
    t->stuck = false; /* a signal handler that comes now finds it inside, and no more */
    resume(t, 0);
    if (t->stuck)
        gt_lost();
    return t->stuck ? NULL : t;
}

bool gt_wait_ready(struct gt_thread *t, uintptr_t frame)
{
    if (t->frame && !t->jumped && (frame < t->frame || gt_thread_on_signal_stack()))
        return false;
    if (t->frame)
        resume(t, GT_HOOK_PATIENCE_NS);
    t->jumped = false;
    return !t->stuck;
}

static struct gt_lock_in_use lock_of(const struct gt_wait_for *what)
{
    const void *at = gt_lock_at(what->addr);
    if (what->kind == GT_LOCK_NONE || what->kind == GT_LOCK_JOIN || !gt_recording())
        return (struct gt_lock_in_use){.at = NULL};
    return (struct gt_lock_in_use){
        .at = at, .holder = gt_owner_of(what->kind, at), .shared = gt_shared_is(what->kind, at)};
}

__attribute__((noinline)) struct gt_wait gt_wait_begin_for(const struct gt_wait_for *what)
{
    struct gt_wait wait = {.frame = FRAME()};
    struct gt_lock_in_use lock = lock_of(what); /* first: it may be given up soon */
    if (__builtin_expect(gt_drain_unattended, 0))
        gt_process_attend();
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return wait;
    if (gt_wait_ready(t, wait.frame)) {
        gt_heap_settle(t);
        /* Taking the stack is part of the call, as a wait is. */
        struct gt_wait_for now = *what;
        now.since = what->since ? what->since : gt_clock_now();
        struct gt_stack *stack = gt_capture_from(t, what->hook, what->from);
        now.lock = lock;
        now.lock.epoch = (uint32_t)gt_modules_epoch();
        wait.mutex = what->mutex;
        if (what->kind == GT_LOCK_MUTEX || what->kind == GT_LOCK_RWLOCK) {
            gt_hot_touch(what->kind, lock.at, now.since, lock.holder);
            wait.lock = lock.at;
        }
        uint64_t due = now.end ? gt_timeout_due(now.end, now.since, GT_SLEEP_PER_MILLE) : 0;
        bool needs_mutex = due && what->mutex;
        atomic_store_explicit(&t->w.due, due, memory_order_relaxed);
        atomic_store_explicit(&t->w.due_mutex, needs_mutex ? gt_lock_at(what->mutex) : NULL,
                              memory_order_relaxed);
        if (gt_park(&t->w, &t->parking, &now, stack)) {
            wait.thread = t;
            wait.since = now.since;
            wait.hook = what->hook;
            if (what->whole)
                wait.frame = UINTPTR_MAX;
            t->frame = wait.frame;
            wait.slept = needs_mutex ? gt_usage_own_waits() : 0;
        }
    }
    gt_thread_leave(t);
    return wait;
}

struct gt_wait gt_wait_begin(enum gt_hook hook, enum gt_reason reason, const void *addr)
{
    return gt_wait_begin_for(&(struct gt_wait_for){.hook = hook, .reason = reason, .addr = addr});
}

struct gt_wait gt_wait_begin_lock(enum gt_hook hook, enum gt_lock_kind kind, const void *lock,
                                  const struct gt_timeout *end)
{
    return gt_wait_begin_for(&(struct gt_wait_for){.hook = hook,
                                                   .reason = GT_REASON_SYNC,
                                                   .addr = lock,
                                                   .kind = kind,
                                                   .timed = gt_timeout_is_set(end),
                                                   .end = end});
}

void gt_wait_end(struct gt_wait *wait)
{
    struct gt_thread *t = wait->thread;
    if (!t || t->frame != wait->frame)
        return;
    gt_thread_reenter(t);
    t->w.woken = wait->woken;
    resume(t, GT_HOOK_PATIENCE_NS);
    gt_hot_spent(&t->holds, wait->hook, wait->since, t->w.last);
    if (wait->lock)
        gt_hot_waited(wait->lock, wait->since, t->w.last);
    gt_thread_leave(t);
    if (wait->mutex)
        gt_hot_forget(wait->mutex);
    gt_process_check_queue();
}

void gt_wait_expired(struct gt_wait *wait, const struct gt_timeout *timeout)
{
    if (wait->thread)
        wait->woken = gt_timeout_over(timeout, wait->since, GT_SLEEP_PER_MILLE);
}

void gt_wait_expired_once(struct gt_wait *wait, const struct gt_timeout *timeout)
{
    if (!wait->thread || !gt_timeout_is_set(timeout) || wait->slept == UINT64_MAX)
        return;
    GT_KEEP_ERRNO;
    uint64_t now = gt_usage_own_waits();
    if (now != UINT64_MAX && now <= wait->slept + 1)
        gt_wait_expired(wait, timeout);
}

bool gt_wait_is_taken(const void *mutex, uint32_t tid)
{
    uint32_t owner =
        gt_can_read(mutex, sizeof(pthread_mutex_t)) ? gt_owner_of(GT_LOCK_MUTEX, mutex) : 0;
    return owner && owner != tid;
}

uint64_t gt_yield_begin(void)
{
    return gt_recording() && !gt_muted() ? gt_clock_now() : NO_YIELD;
}

static void write_yield(struct gt_thread *t, uint64_t since, struct gt_stack *stack)
{
    if (!gt_writer_pin(&t->w))
        return;
    if (gt_ev_go_stop(&t->w, since, GT_REASON_YIELD, stack))
        gt_ev_go_resume(&t->w, stack);
    gt_writer_unpin(&t->w);
}

__attribute__((noinline)) void gt_yield_end(enum gt_hook hook, uint64_t since)
{
    bool all = gt_options.call_min == 0;
    if (since == NO_YIELD || (!all && gt_call_is_short(gt_clock_now() - since)))
        return;
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    if (!gt_muted() && gt_wait_ready(t, FRAME()))
        write_yield(t, since, gt_capture(t, hook));
    gt_thread_leave(t);
    gt_process_check_queue();
}

uint32_t gt_wake_slow(const struct gt_wake *wake)
{
    if (!gt_registry_reaches(wake->addr))
        return 0;
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return 0;
    uint32_t n = gt_park_wake(&t->w, wake, gt_capture_from(t, wake->hook, wake->from));
    gt_thread_leave(t);
    return n;
}

void gt_wake_pass(const struct gt_wake *wake, enum gt_hook next, const void *to)
{
    struct gt_thread *t = gt_registry_any(wake->addr) ? gt_thread_enter() : NULL;
    if (!t)
        return;
    struct gt_stack *then = gt_capture_from(t, next, GT_NOWHERE);
    gt_park_pass(&t->w, wake->addr, to, gt_capture_from(t, wake->hook, wake->from), then);
    gt_thread_leave(t);
}

void gt_wait_note_jump(void)
{
    struct gt_thread *t = gt_self;
    if (!t || !gt_writer_gen(&t->w))
        return;
    if (t->frame)
        t->jumped = true;
    if (t->inside && !t->stuck)
        gt_writer_jumped(&t->w);
    if (!gt_call_is_announced(&t->w))
        return;
    if (!t->inside) {
        gt_thread_reenter(t);
        gt_call_keep(&t->w);
        gt_thread_leave(t);
    }
    gt_capture_close(t);
}

#define JUMP(name, env_type)                     \
    GT_EXPORT void name(env_type env, int value) \
    {                                            \
        gt_wait_note_jump();                     \
        gt_real.name(env, value);                \
        __builtin_unreachable();                 \
    }

JUMP(longjmp, jmp_buf)
JUMP(_longjmp, jmp_buf)
JUMP(siglongjmp, sigjmp_buf)
JUMP(__longjmp_chk, sigjmp_buf)

/* Not swapcontext: what is left by that is gone back to; and a frame of ours would be, too. */
GT_EXPORT int setcontext(const ucontext_t *context)
{
    gt_wait_note_jump();
    return gt_real.setcontext(context);
}
