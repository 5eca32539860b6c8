/* See events.h. */
#include "events.h"

#include "account.h"
#include "given.h"
#include "held.h"
#include "put.h"
#include "states.h"

#include "encoder/base/clock.h"

/* Garbage collections so far, one after the other. */
static struct {
    uint64_t seq; /* of the last collection's end; each beginning has one, too */
    uint64_t end; /* when that was */
} collections;

void gt_events_after_fork(void)
{
    collections.end = 0;
}

static inline uint8_t *begin(struct gt_writer *w, enum gt_event_type type)
{
    return gt_put_at(w, type, gt_clock_now());
}

/* `ts`, or later: readers must see the event after its cause, in another stream (rule 6). */
static inline uint64_t at_after(const struct gt_writer *w, uint64_t ts, uint64_t cause)
{
    if (__builtin_expect(ts > cause + gt_put_early(w), 1)) /* a unit is a nanosecond or more */
        return ts;
    uint64_t least = cause + 2 + gt_clock_units(gt_put_early(w));
    return ts > least ? ts : least;
}

static inline void event0(struct gt_writer *w, enum gt_event_type type)
{
    gt_put_end(w, begin(w, type));
}

static inline void event1(struct gt_writer *w, enum gt_event_type type, uint64_t a)
{
    gt_put_end(w, gt_varint_put(begin(w, type), a));
}

/* Writes the name that another thread has given the goroutine's. */
static __attribute__((noinline, cold)) void take_name(struct gt_writer *w)
{
    char name[GT_GIVEN_NAME];
    /* acquire: pairs with gt_given_name */
    w->given = atomic_load_explicit(&gt_given_count, memory_order_acquire);
    if (!gt_given_take(w->m, &w->given_version, name))
        return;
    struct gt_string *label = gt_strings_intern(name);
    if (label)
        gt_ev_go_label(w, label);
    else
        gt_lost();
}

/* The goroutine must be running. */
static inline void look_for_name(struct gt_writer *w)
{
    uint32_t given = atomic_load_explicit(&gt_given_count, memory_order_relaxed);
    if (__builtin_expect(w->given != given, 0))
        take_name(w);
}

/* For hooks, while other threads may find the goroutine in a registry: see GT_LOCK_PATIENCE_NS. */
static bool lock_g(struct gt_g *g)
{
    bool locked = gt_lock_within(&g->lock, GT_RANK_G, GT_HOOK_PATIENCE_NS);
    if (!locked)
        gt_lost();
    return locked;
}

/*
 * Writes the owner's rewaits before its next event, which may be an effect of theirs. false: the
 * lock is not available. That happens in a signal handler only: another thread is about to unblock
 * the interrupted goroutine, and stands still.
 */
static bool own_rewaits(struct gt_writer *w)
{
    if (__builtin_expect(!atomic_load_explicit(&w->g.rewaits, memory_order_relaxed), 1))
        return true;
    if (!lock_g(&w->g))
        return false;
    gt_ev_rewaits_locked(w, gt_writer_gen(w));
    gt_unlock(&w->g.lock);
    return true;
}

/* Instead of a status with a stack: see enum gt_after_call. */
static __attribute__((noinline, cold)) void after_call_slow(struct gt_writer *w)
{
    if (gt_format->after_call != GT_AFTER_CALL_STOP_START)
        return;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_STOP, w->last), GT_REASON_PREEMPTED);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(w->g.wait_stack, gt_writer_gen(w))));
    p = gt_varint_put(gt_put_at(w, GT_EV_GO_START, w->last), w->g.id);
    gt_put_end(w, gt_varint_put(p, ++w->g.seq));
}

static void syscall_end(struct gt_writer *w, uint64_t ts)
{
    struct gt_g *g = &w->g;
    gt_put_end(w, gt_put_at(w, GT_EV_GO_SYSCALL_END, ts));
    g->state = GT_G_RUNNING;
    w->p->state = GT_P_RUNNING;
    if (__builtin_expect(gt_format->after_call != GT_AFTER_CALL_STATUS, 0)) {
        after_call_slow(w);
        return;
    }
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_STATUS_STACK, w->last), g->id);
    p = gt_varint_put(gt_varint_put(p, w->m), GT_G_RUNNING);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(g->wait_stack, gt_writer_gen(w))));
    g->seq = 0;
}

void gt_ev_procs_change(struct gt_writer *w, uint64_t n, struct gt_stack *stack)
{
    uint8_t *p = gt_varint_put(begin(w, GT_EV_PROCS_CHANGE), n);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
}

void gt_ev_go_create(struct gt_writer *w, struct gt_g *g, struct gt_stack *new_stack,
                     struct gt_stack *stack)
{
    uint32_t gen = gt_writer_gen(w);
    g->state = GT_G_RUNNABLE;
    g->status_gen = gen;
    g->seq = 0;
    __atomic_store_n(&g->routine, new_stack, __ATOMIC_RELEASE); /* see renew_locked */
    uint8_t *p = gt_varint_put(begin(w, GT_EV_GO_CREATE), g->id);
    p = gt_varint_put(p, gt_stack_use(new_stack, gen));
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gen)));
    if (g != &w->g) {
        g->changed = w->last;
        /* release: pairs with gt_ev_is_unstarted's acquire. */
        atomic_store_explicit(&g->unstarted, true, memory_order_release);
    }
}

void gt_ev_go_forget(struct gt_g *g)
{
    gt_lock(&g->lock, GT_RANK_G);
    atomic_store_explicit(&g->unstarted, false, memory_order_relaxed);
    g->state = GT_G_NONE;
    __atomic_store_n(&g->routine, NULL, __ATOMIC_RELAXED);
    gt_unlock(&g->lock);
}

static void go_start_at(struct gt_writer *w, uint64_t ts)
{
    w->g.state = GT_G_RUNNING;
    uint8_t *p = gt_put_at(w, GT_EV_GO_START, at_after(w, ts, w->g.changed));
    gt_put_end(w, gt_varint_put(gt_varint_put(p, w->g.id), ++w->g.seq));
}

/* how: says, too, whether the trace contains that the thread was created, and that it runs. */
static void begin_thread(struct gt_writer *w, enum gt_account_begin how, struct gt_stack *new_stack)
{
    w->p = gt_procs_take(gt_writer_gen(w)); /* pinned: the drain side reads it */
    if (!w->p) {
        gt_lost();
        return;
    }
    if (how == GT_ACCOUNT_ALONE) {
        w->p->state = GT_P_RUNNING;
        w->g.state = GT_G_RUNNING;
    }
    /* Those that a reused writer, or an earlier generation's goroutine, still lacks. */
    gt_lock(&w->g.lock, GT_RANK_G);
    gt_ev_statuses_locked(w, gt_writer_gen(w));
    atomic_store_explicit(&w->g.unstarted, false, memory_order_relaxed);
    gt_unlock(&w->g.lock);
    if (how != GT_ACCOUNT_ALONE) {
        w->p->state = GT_P_RUNNING;
        uint8_t *p = gt_put_at(w, GT_EV_PROC_START, at_after(w, gt_clock_now(), w->p->left));
        gt_put_end(w, gt_varint_put(gt_varint_put(p, w->p->id), ++w->p->seq));
        if (how == GT_ACCOUNT_MET)
            gt_ev_go_create(w, &w->g, new_stack, NULL);
        go_start_at(w, gt_clock_now());
    }
    gt_account_begin(w, how);
    gt_held_begin(w);
    if (how != GT_ACCOUNT_ALONE)
        look_for_name(w);
}

void gt_ev_thread_start(struct gt_writer *w)
{
    begin_thread(w, GT_ACCOUNT_BORN, NULL);
}

void gt_ev_thread_appear(struct gt_writer *w, struct gt_stack *new_stack)
{
    begin_thread(w, GT_ACCOUNT_MET, new_stack);
}

void gt_ev_thread_running(struct gt_writer *w)
{
    begin_thread(w, GT_ACCOUNT_ALONE, NULL);
}

bool gt_ev_go_stop(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    w->g.state = GT_G_RUNNABLE;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_STOP, since), reason);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    return true;
}

static void unblock_other(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    GT_ASSERT("writer.h, rule 3: the lock guards a goroutine's state",
              gt_debug_has_lock(&target->lock));
    gt_put_unblock(w, target, stack, at_after(w, gt_clock_now(), target->stated));
    GT_ASSERT("writer.h, rule 6: an effect is after its cause", w->last > target->stated);
    target->changed = w->last;
}

/* The target's status in the generation first, if it has none there yet. */
static void unblock_waiting(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                            uint32_t gen)
{
    gt_ev_status_locked(w, target, GT_NO_M, gen);
    unblock_other(w, target, stack);
}

static uint64_t woken_at(const struct gt_writer *w)
{
    uint64_t now = gt_clock_now();
    return w->woken && w->woken < now ? w->woken : now;
}

/* since: when the goroutine went on; 0: now, and its wait was over at woken_at. */
static inline void resume(struct gt_writer *w, struct gt_stack *stack, uint64_t since)
{
    own_rewaits(w);
    if (w->g.state == GT_G_SYSCALL)
        syscall_end(w, since ? since : gt_clock_now());
    if (w->g.state == GT_G_WAITING)
        gt_put_unblock(w, &w->g, stack, since ? since : woken_at(w));
    if (w->g.state == GT_G_RUNNABLE)
        go_start_at(w, since ? since : gt_clock_now());
    if (w->g.state != GT_G_RUNNING)
        return;
    uint32_t first = atomic_load_explicit(&gt_gen.first, memory_order_relaxed);
    if (__builtin_expect(w->told_gen < first, 0))
        gt_ev_tell(w, gt_writer_gen(w));
    look_for_name(w); /* that another thread may have given it meanwhile */
}

void gt_ev_go_resume(struct gt_writer *w, struct gt_stack *stack)
{
    resume(w, stack, 0);
    w->woken = 0;
}

void gt_ev_go_resume_since(struct gt_writer *w, struct gt_stack *stack, uint64_t since)
{
    resume(w, stack, since);
}

void gt_ev_thread_end(struct gt_writer *w)
{
    gt_account_end(w);
    gt_held_end(w);
    if (w->p) {
        if (w->g.state != GT_G_RUNNING)
            gt_ev_go_resume(w, w->g.wait_stack); /* a wait that was left by longjmp */
        look_for_name(w);
        event0(w, GT_EV_GO_DESTROY);
        event0(w, GT_EV_PROC_STOP);
        struct gt_p *p = w->p;
        p->state = GT_P_IDLE;
        w->p = NULL;
        gt_procs_release(p, gt_writer_gen(w), w->last);
    }
    w->g.state = GT_G_NONE;
    w->g.wait_stack = NULL;
    __atomic_store_n(&w->g.routine, NULL, __ATOMIC_RELAXED);
    w->label = NULL;
    gt_given_forget(w->m);
    w->given = w->given_version = 0;
    gt_writer_retire_texts(w, gt_writer_gen(w));
    gt_writer_retire(w, gt_writer_gen(w));
}

void gt_ev_go_sleep_on(struct gt_g *target)
{
    if (!lock_g(target))
        return;
    gt_ev_sleep_on_locked(target);
    gt_unlock(&target->lock);
}

/* again: the goroutine may also have been unblocked before, and have waited again since. */
static inline bool unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                           bool again)
{
    uint32_t gen = gt_writer_gen(w);
    if (!own_rewaits(w) || !lock_g(target))
        return true;
    bool current = target->status_gen <= gen; /* rule 4 */
    if (current && target->state == GT_G_WAITING) {
        unblock_waiting(w, target, stack, gen);
    } else if (again && current && target->state == GT_G_RUNNABLE && target->own_gen == gen &&
               !gt_gen_is_mute(gen) && gt_ev_may_rewait_locked(target)) {
        gt_ev_rewait_locked(target, gen, target->wait_stack);
        unblock_other(w, target, stack);
    }
    gt_unlock(&target->lock);
    return current;
}

bool gt_ev_go_unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    return unblock(w, target, stack, false);
}

bool gt_ev_go_unblock_again(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    /* In a signal handler the target may be w's own goroutine: its thread is awake. */
    return target == &w->g || unblock(w, target, stack, true);
}

bool gt_ev_go_unblock_and_wait(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                               struct gt_stack *then)
{
    uint32_t gen = gt_writer_gen(w);
    if (!own_rewaits(w) || !lock_g(target))
        return true;
    bool current = target->status_gen <= gen && target->own_gen == gen;
    if (current && target->state == GT_G_WAITING && gt_ev_may_rewait_locked(target)) {
        if (!gt_gen_is_mute(gen)) {
            unblock_waiting(w, target, stack, gen);
            gt_ev_rewait_locked(target, gen, then);
            target->state = GT_G_WAITING;
        }
        target->wait_stack = then;
        atomic_store_explicit(&gt_ev_writer_of(target)->due, 0, memory_order_relaxed);
    }
    gt_unlock(&target->lock);
    return current;
}

void gt_ev_gc(struct gt_writer *w, const struct gt_collection *gc)
{
    if (w->g.state != GT_G_RUNNING || !w->p)
        return;
    uint64_t seq = ++collections.seq, least = collections.end + 2 + gt_clock_units(gt_put_early(w));
    uint64_t begin_ts = gc->begin > least ? gc->begin : least;
    collections.seq++;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GC_BEGIN, begin_ts), seq);
    gt_put_end(w, gt_varint_put(p, 0));
    for (uint32_t i = 0; i < gc->pauses; i++) {
        p = gt_varint_put(gt_put_at(w, GT_EV_STW_BEGIN, gc->pause[i].begin), GT_REASON_GC);
        gt_put_end(w, gt_varint_put(p, 0));
        gt_put_end(w, gt_put_at(w, GT_EV_STW_END, gc->pause[i].end));
    }
    gt_put_end(w, gt_varint_put(gt_put_at(w, GT_EV_GC_END, gc->end), seq + 1));
    collections.end = w->last;
}

void gt_ev_go_label(struct gt_writer *w, struct gt_string *label)
{
    char older[GT_GIVEN_NAME];
    gt_given_take(w->m, &w->given_version, older); /* it no longer has that one */
    w->label = label;
    gt_held_begin(w);
    event1(w, GT_EV_GO_LABEL, gt_string_use(label, gt_writer_gen(w)));
}

bool gt_ev_user(struct gt_writer *w, enum gt_event_type type, const uint64_t *args,
                struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    uint8_t *p = begin(w, type);
    for (int i = 0; i < gt_event_args[type] - 1; i++)
        p = gt_varint_put(p, args[i]);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    return true;
}

void gt_ev_lock(struct gt_writer *w, uint64_t since, struct gt_string *what, struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return;
    uint32_t gen = gt_writer_gen(w);
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_USER_LOG, since), 0);
    p = gt_varint_put(gt_varint_put(p, gt_held_category(what)), gt_string_use(what, gen));
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gen)));
}

bool gt_ev_heap_alloc(struct gt_writer *w, uint64_t at, uint64_t bytes)
{
    own_rewaits(w);
    if (w->p)
        gt_put_end(w, gt_varint_put(gt_put_at(w, GT_EV_HEAP_ALLOC, at), bytes));
    return w->p != NULL;
}

bool gt_ev_heap_goal(struct gt_writer *w, uint64_t bytes)
{
    if (w->p)
        event1(w, GT_EV_HEAP_GOAL, bytes);
    return w->p != NULL;
}
