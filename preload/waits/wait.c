/* See wait.h. */
#include "wait.h"

#include "futex_any.h"
#include "hot.h"

#include "encoder/base/fetch.h"
#include "encoder/drain/drain.h"
#include "encoder/format/lock_texts.h"
#include "encoder/thread/states.h"
#include "preload/bind/real.h"
#include "preload/control/process_relief.h"
#include "preload/heap/heap.h"
#include "preload/process/read_usage.h"
#include "preload/registry/contention.h"
#include "preload/registry/owner.h"
#include "preload/registry/sem_lock.h"
#include "preload/stacks/code_layouts.h"
#include "preload/thread/capture.h"
#include "symbolize/elf/modules.h"

#define FRAME() ((uintptr_t)__builtin_frame_address(0))

bool gt_wait_ready(struct gt_thread *t, uintptr_t frame)
{
    if (t->frame && !t->jumped && (frame < t->frame || gt_thread_on_signal_stack()))
        return false;
    if (t->frame)
        gt_thread_resume(t, GT_HOOK_PATIENCE_NS);
    t->jumped = false;
    return !t->stuck;
}

static struct gt_lock_in_use lock_of(const struct gt_wait_for *what)
{
    const void *at = what->lock.at ? what->lock.at : gt_lock_at(what->addr);
    if (what->kind == GT_LOCK_NONE || what->kind == GT_LOCK_JOIN || !gt_recording())
        return (struct gt_lock_in_use){.at = NULL};
    return (struct gt_lock_in_use){.at = at,
                                   .holder =
                                       what->kept ? GT_HOLDER_KEPT : gt_owner_of(what->kind, at),
                                   .shared = gt_shared_is(what->kind, at)};
}

static bool is_pythons(enum gt_lock_kind kind)
{
    return kind == GT_LOCK_PYMUTEX || kind == GT_LOCK_PYRLOCK;
}

static bool may_have_holder(enum gt_lock_kind kind, const void *lock)
{
    return gt_contention_counts(kind) || is_pythons(kind) ||
           (kind == GT_LOCK_SEM && lock && !gt_sem_lock_is_none(lock));
}

__attribute__((noinline)) struct gt_wait gt_wait_begin_for(const struct gt_wait_for *what)
{
    struct gt_wait wait = {.frame = FRAME()};
    struct gt_lock_in_use lock = lock_of(what); /* first: the holder may unlock it soon */
    if (__builtin_expect(gt_drain_unattended, 0))
        gt_process_attend();
    struct gt_thread *t = gt_thread_enter();
    if (!t) {
        wait.stands = gt_thread_stand();
        return wait;
    }
    if (gt_wait_ready(t, wait.frame)) {
        gt_heap_settle(t);
        /* The time for taking the stack counts as part of the wait. */
        struct gt_wait_for now = *what;
        now.since = what->since ? what->since : gt_clock_now();
        struct gt_stack *stack = gt_capture_from(t, what->hook, what->from);
        /* Not as a whole: the CPU would wait until the stores to the members are in its cache. */
        now.lock.at = lock.at;
        now.lock.holder = lock.holder;
        now.lock.shared = lock.shared;
        now.lock.epoch = (uint32_t)gt_modules_epoch();
        wait.mutex = what->mutex;
        if (what->kind != GT_LOCK_GIL) /* which a thread waits for between any two calls */
            t->tried.lock = NULL;
        if (may_have_holder(what->kind, lock.at)) {
            /* Unlocks of Python's locks are not all seen: py_lock.c knows which holds are. */
            uint32_t holder = is_pythons(what->kind) ? GT_HOLDER_UNKNOWN : lock.holder;
            gt_hot_touch(what->kind, lock.at, now.since, holder);
            wait.lock = lock.at;
            wait.counts = gt_contention_counts(what->kind);
        }
        uint64_t due = now.end ? gt_timeout_due(now.end, now.since, GT_SLEEP_PER_MILLE) : 0;
        bool needs_mutex = due && what->mutex;
        atomic_store_explicit(&t->w.due, due, memory_order_relaxed);
        atomic_store_explicit(&t->w.due_mutex, needs_mutex ? gt_lock_at(what->mutex) : NULL,
                              memory_order_relaxed);
        if (gt_park(&t->w, &t->parking, &now, stack)) {
            wait.thread = t;
            wait.since = now.since;
            wait.due = due;
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

/* All that the thread does until the next call belongs to the wait: see `whole` in park.h. */
void gt_wait_keep(struct gt_wait *wait, const void *addr)
{
    struct gt_thread *t = wait->thread;
    if (!t || t->frame != wait->frame)
        return;
    t->kept = (struct gt_kept_wait){addr, wait->since};
    t->frame = UINTPTR_MAX;
    wait->thread = NULL;
}

void gt_wait_keep_until_call(struct gt_wait *wait, const void *addr)
{
    struct gt_thread *t = wait->thread;
    gt_wait_keep(wait, addr);
    if (t && t->kept.addr == addr)
        t->jumped = true; /* see gt_wait_ready */
}

__attribute__((noinline)) bool gt_wait_goes_on_slow(struct gt_wait *wait,
                                                    const struct gt_wait_for *what)
{
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return false;
    struct gt_kept_wait kept = t->kept;
    t->kept.addr = NULL;
    bool open = t->frame == UINTPTR_MAX;
    bool on = open && kept.addr == what->addr && gt_registry_renew(&t->parking.waiter);
    *wait = (struct gt_wait){.thread = on ? t : NULL,
                             .frame = FRAME(),
                             .hook = what->hook,
                             .since = kept.since,
                             .mutex = what->mutex};
    if (on) {
        t->frame = wait->frame;
        t->jumped = false;
        const void *lock = gt_lock_at(what->addr);
        if (may_have_holder(what->kind, lock)) {
            wait->lock = lock;
            wait->counts = gt_contention_counts(what->kind);
            gt_hot_touch(what->kind, lock, gt_clock_now(), gt_owner_of(what->kind, lock));
        }
    } else if (open) {
        gt_thread_resume(t, GT_HOOK_PATIENCE_NS);
    }
    gt_thread_leave(t);
    return on;
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

static bool is_taken(const struct gt_tried *tried, uint32_t tid)
{
    int tokens = 0;
    if (!gt_can_read(tried->lock, sizeof(pthread_rwlock_t)))
        return false; /* the lock is gone */
    if (tried->kind == GT_LOCK_SEM)
        return sem_getvalue((sem_t *)tried->lock, &tokens) == 0 && !tokens;
    uint32_t owner = gt_owner_of(tried->kind, tried->lock);
    return owner && owner != tid;
}

struct gt_wait gt_wait_begin_sleep(enum gt_hook hook, const struct gt_timeout *end)
{
    const struct gt_thread *t = gt_self;
    struct gt_wait_for what = {.hook = hook, .reason = GT_REASON_SLEEP, .end = end};
    if (t && !t->inside && t->tried.lock && is_taken(&t->tried, t->w.m)) {
        what.kind = t->tried.kind;
        what.lock.at = t->tried.lock;
    }
    return gt_wait_begin_for(&what);
}

void gt_wait_fetch(const struct gt_wait *wait)
{
    enum { MANY = 32 }; /* the memory of fewer threads stays in a cache */
    const struct gt_thread *t = wait->thread;
    if (!t || !wait->mutex || gt_registry_waits(wait->mutex) < MANY)
        return;
    gt_fetch(t, offsetof(struct gt_thread, w.account));
    gt_fetch(&t->parking, sizeof t->parking);
    gt_fetch(&t->holds, offsetof(struct gt_holds, hold[1]));
    gt_trail_fetch(&t->trail);
    gt_fetch(t->w.pos, 1);
    gt_fetch(t->w.buf, 1);
    gt_fetch(t->w.g.rewait, 1);
    /*
     * The thread's neighbours in the mutex's line. If they change meanwhile, the wrong ones are
     * fetched, which does no harm.
     */
    const struct gt_waiter *relock = &t->parking.relock;
    gt_fetch(__atomic_load_n(&relock->prev, __ATOMIC_RELAXED), sizeof *relock);
    gt_fetch(__atomic_load_n(&relock->next, __ATOMIC_RELAXED), sizeof *relock);
}

static void end(struct gt_thread *t, struct gt_wait *wait)
{
    gt_thread_reenter(t);
    t->w.woken = wait->woken;
    const struct gt_stack *stack = t->w.g.wait_stack;
    gt_thread_resume(t, GT_HOOK_PATIENCE_NS);
    gt_hot_spent(&t->holds, wait->hook, wait->since, t->w.last);
    if (wait->lock) {
        gt_hot_waited(wait->lock, wait->since, t->w.last);
        if (wait->counts)
            gt_contention_add(wait->lock, stack, wait->since, t->w.last);
    }
    gt_thread_leave(t);
    if (wait->mutex)
        gt_hot_forget(wait->mutex);
    gt_process_check_queue();
}

void gt_wait_end(struct gt_wait *wait)
{
    struct gt_thread *t = wait->thread;
    if (!t && wait->stands)
        gt_thread_go_on(gt_self);
    if (t && t->frame == wait->frame)
        end(t, wait);
    gt_process_check_hold();
}

void gt_wait_expired(struct gt_wait *wait, const struct gt_timeout *timeout)
{
    if (wait->thread)
        wait->woken = gt_timeout_over(timeout, wait->since, wait->due, GT_SLEEP_PER_MILLE);
}

void gt_wait_expired_once(struct gt_wait *wait, const struct gt_timeout *timeout)
{
    if (!wait->thread || !gt_timeout_is_set(timeout) || wait->slept == UINT64_MAX)
        return;
    GT_KEEP_ERRNO;
    uint64_t now = gt_usage_own_waits(), may = !gt_timeout_is_past(wait->since, wait->due);
    if (now != UINT64_MAX && now <= wait->slept + may)
        gt_wait_expired(wait, timeout);
}

bool gt_wait_is_taken(const void *mutex, uint32_t tid)
{
    uint32_t owner =
        gt_can_read(mutex, sizeof(pthread_mutex_t)) ? gt_owner_of(GT_LOCK_MUTEX, mutex) : 0;
    return owner && owner != tid;
}

bool gt_wait_is_asleep(struct gt_writer *w)
{
    struct gt_parking *p = &gt_thread_of(w)->parking;
    uintptr_t futex; /* or the first argument of another call, which is no address of a lock */
    return (gt_registry_has(&p->waiter) || gt_registry_has(&p->relock)) &&
           gt_usage_sleeps(w->m, &futex) &&
           (gt_registry_asleep_again(&p->waiter, futex) ||
            gt_registry_asleep_again(&p->relock, futex));
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
    gt_futex_any_leave();
    if (!t || !gt_writer_gen(&t->w))
        return;
    if (t->frame)
        t->jumped = true;
    gt_thread_go_on(t);
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

/*
 * swapcontext has no hook: the program comes back to a context that it left by swapcontext, and
 * would come back to our hook's frame, too.
 */
GT_EXPORT int setcontext(const ucontext_t *context)
{
    gt_wait_note_jump();
    return gt_real.setcontext(context);
}
