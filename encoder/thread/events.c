/* See events.h. */
#include "events.h"

#include "given.h"
#include "held.h"
#include "account.h"

#include "encoder/base/arena.h"
#include "encoder/base/box.h"

/* Garbage collections so far, one after the other. */
static struct {
    uint64_t seq; /* of the last collection's end; each beginning has one, too */
    uint64_t end; /* when that was */
} collections;

/* For an owner that has pinned: the drain side reads w->p. */
static bool take_p(struct gt_writer *w)
{
    w->p = gt_procs_take(gt_writer_gen(w));
    if (!w->p)
        gt_lost();
    return w->p != NULL;
}

void gt_events_after_fork(void)
{
    collections.end = 0;
}

static inline bool may_write(const struct gt_writer *w)
{
    return gt_debug_pinned() == w || gt_debug_has_rank(GT_RANK_SIDE) ||
           (atomic_load_explicit(&w->gen, memory_order_relaxed) & GT_GEN_SWITCHING);
}

/* release: an event that can be found is whole, whatever ends the process. */
static inline void commit(struct gt_writer *w, uint8_t *end)
{
    GT_ASSERT("writer.h: events between pin and unpin fit in GT_EVENT_ROOM",
              !w->buf || w->shown != &w->buf->pos || end <= w->buf->data + gt_buffers_room(w->buf));
    w->pos = end;
    __atomic_store_n(w->shown, end, __ATOMIC_RELEASE);
}

static inline uint8_t *begin_at(struct gt_writer *w, enum gt_event_type type, uint64_t ts)
{
    GT_ASSERT("writer.h, rule 1: who writes has pinned the generation, or switches the writer",
              may_write(w));
    if (ts < w->last)
        ts = w->last; /* a thread's time never goes back, whatever the CPUs' counters say */
    uint8_t *p = w->pos;
    *p++ = type;
    p = gt_varint_put(p, ts - w->last);
    w->last = ts;
    atomic_store_explicit(&w->events, atomic_load_explicit(&w->events, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return p;
}

static inline uint8_t *begin(struct gt_writer *w, enum gt_event_type type)
{
    return begin_at(w, type, gt_clock_now());
}

static uint32_t behind(const struct gt_writer *w)
{
    return (uint32_t)(w->events - w->piece) + 3; /* the next event, the batch, and one more */
}

/* `ts`, or later: readers must see the event after its cause, in another stream (rule 6). */
static inline uint64_t at_after(const struct gt_writer *w, uint64_t ts, uint64_t cause)
{
    if (__builtin_expect(ts > cause + behind(w), 1)) /* a unit is a nanosecond or more */
        return ts;
    uint64_t least = cause + 2 + gt_clock_units(behind(w));
    return ts > least ? ts : least;
}

static uint64_t now_after(const struct gt_writer *w, uint64_t cause)
{
    return at_after(w, gt_clock_now(), cause);
}

/* The own thread has just written the goroutine's state. */
static void stated(struct gt_writer *w)
{
    w->g.stated = w->last;
    w->g.behind = behind(w);
}

static inline void event0(struct gt_writer *w, enum gt_event_type type)
{
    commit(w, begin(w, type));
}

static inline void event1(struct gt_writer *w, enum gt_event_type type, uint64_t a)
{
    commit(w, gt_varint_put(begin(w, type), a));
}

static inline void event2(struct gt_writer *w, enum gt_event_type type, uint64_t a, uint64_t b)
{
    commit(w, gt_varint_put(gt_varint_put(begin(w, type), a), b));
}

static inline void event3(struct gt_writer *w, enum gt_event_type type, uint64_t a, uint64_t b,
                          uint64_t c)
{
    commit(w, gt_varint_put(gt_varint_put(gt_varint_put(begin(w, type), a), b), c));
}

/* The M of a status that binds no thread (trace.NoThread is -1). */
#define NO_M UINT64_MAX

static bool on_thread(const struct gt_g *g)
{
    return g->state == GT_G_RUNNING || g->state == GT_G_SYSCALL;
}

/* For a reader to which g is new: the stack where g is, or at least where it began. */
static struct gt_stack *status_stack(const struct gt_g *g, uint32_t gen)
{
    bool away = g->state == GT_G_WAITING || g->state == GT_G_SYSCALL;
    uint32_t first = atomic_load_explicit(&gt_gen.first, memory_order_relaxed);
    if (gen != first || gt_format->minor < 23)
        return NULL;
    return away && g->wait_stack ? g->wait_stack : g->routine;
}

/* Rule 3: writes g's status in generation gen, if it does not stand yet. With g->lock held. */
static void status_g_locked(struct gt_writer *w, struct gt_g *g, uint64_t m, uint32_t gen)
{
    GT_ASSERT("writer.h, rule 3: the lock guards a goroutine's state", gt_debug_has_lock(&g->lock));
    GT_ASSERT("writer.h, rule 4: no earlier generation than where the status stands",
              g->status_gen <= gen || g->state == GT_G_NONE);
    if (g->status_gen == gen || g->state == GT_G_NONE)
        return;
    struct gt_stack *stack = status_stack(g, gen);
    if (stack) {
        uint8_t *p = gt_varint_put(begin(w, GT_EV_GO_STATUS_STACK), g->id);
        p = gt_varint_put(gt_varint_put(p, m), g->state);
        commit(w, gt_varint_put(p, gt_stack_use(stack, gen)));
    } else {
        event3(w, GT_EV_GO_STATUS, g->id, m, g->state);
    }
    g->status_gen = gen;
    g->seq = 0;
    if (g != &w->g)
        g->changed = w->last;
}

static void status_p(struct gt_writer *w, uint32_t gen)
{
    if (!w->p || w->p->status_gen == gen)
        return;
    event2(w, GT_EV_PROC_STATUS, w->p->id, w->p->state);
    w->p->status_gen = gen;
    w->p->seq = 0;
}

/* Writes what a running goroutine says only once, for a reader that has missed it. */
static __attribute__((noinline, cold)) void tell_again(struct gt_writer *w, uint32_t gen)
{
    uint32_t n = atomic_exchange(&gt_gen.procs, 0);
    if (n)
        event2(w, GT_EV_PROCS_CHANGE, n, 0);
    if (w->label)
        event1(w, GT_EV_GO_LABEL, gt_string_use(w->label, gen));
    w->told_gen = gen;
}

static inline void tell(struct gt_writer *w, uint32_t gen)
{
    uint32_t first = atomic_load_explicit(&gt_gen.first, memory_order_relaxed);
    if (__builtin_expect(w->told_gen < first, 0) && gen >= first)
        tell_again(w, gen);
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

void gt_ev_statuses_locked(struct gt_writer *w, uint32_t gen)
{
    status_p(w, gen);
    status_g_locked(w, &w->g, on_thread(&w->g) ? w->m : NO_M, gen);
    w->g.own_gen = gen;
    stated(w);
    if (w->g.state == GT_G_RUNNING && w->p)
        tell(w, gen);
}

void gt_ev_status_unstarted(struct gt_writer *w, struct gt_g *g, uint32_t gen)
{
    gt_lock(&g->lock, GT_RANK_G);
    if (atomic_load_explicit(&g->unstarted, memory_order_relaxed))
        status_g_locked(w, g, NO_M, gen);
    gt_unlock(&g->lock);
}

static uint32_t rewaits_of(const struct gt_g *g)
{
    return atomic_load_explicit(&g->rewaits, memory_order_relaxed);
}

static void set_rewaits_locked(struct gt_g *g, uint32_t n)
{
    atomic_store_explicit(&g->rewait->n, n, memory_order_release);
    atomic_store_explicit(&g->rewaits, n, memory_order_relaxed);
}

void gt_ev_rewaits_locked(struct gt_writer *w, uint32_t gen)
{
    struct gt_g *g = &w->g;
    uint32_t kept = 0, n = rewaits_of(g);
    enum { BYTES = 2 * (1 + 3 * GT_VARINT_MAX) };
    if (gt_gen_is_mute(gen))
        return; /* any rewaits are of the next generation */
    if (!n || !gt_writer_make_room(w, gen, (ptrdiff_t)n * BYTES + GT_EVENT_ROOM))
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct gt_rewait r = g->rewait->at[i];
        if (r.gen != gen) {
            g->rewait->at[kept++] = r;
            continue;
        }
        uint8_t *p = begin_at(w, GT_EV_GO_START, r.ts);
        commit(w, gt_varint_put(gt_varint_put(p, g->id), r.seq));
        p = gt_varint_put(begin_at(w, GT_EV_GO_BLOCK, r.ts), GT_REASON_SYNC);
        commit(w, gt_varint_put(p, gt_stack_use(r.stack, gen)));
    }
    set_rewaits_locked(g, kept);
    stated(w);
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
    if (__builtin_expect(!rewaits_of(&w->g), 1))
        return true;
    if (!lock_g(&w->g))
        return false;
    gt_ev_rewaits_locked(w, gt_writer_gen(w));
    gt_unlock(&w->g.lock);
    return true;
}

/* A thread that is about to create w's may store a routine at this moment: the newer one stays. */
void gt_ev_renew_locked(struct gt_writer *w)
{
    struct gt_stack *routine = __atomic_load_n(&w->g.routine, __ATOMIC_RELAXED), *was = routine;
    routine = gt_stack_renewed(routine);
    if (routine != was)
        __atomic_compare_exchange_n(&w->g.routine, &was, routine, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    w->g.wait_stack = gt_stack_renewed(w->g.wait_stack);
    struct gt_string *label = gt_string_renewed(w->label);
    if (w->label && !label)
        gt_lost();
    w->label = label;
}

/* Instead of a status with a stack: see enum gt_after_call. */
static __attribute__((noinline, cold)) void after_call_slow(struct gt_writer *w)
{
    if (gt_format->after_call != GT_AFTER_CALL_STOP_START)
        return;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_STOP, w->last), GT_REASON_PREEMPTED);
    commit(w, gt_varint_put(p, gt_stack_use(w->g.wait_stack, gt_writer_gen(w))));
    p = gt_varint_put(begin_at(w, GT_EV_GO_START, w->last), w->g.id);
    commit(w, gt_varint_put(p, ++w->g.seq));
}

static void syscall_end(struct gt_writer *w, uint64_t ts)
{
    struct gt_g *g = &w->g;
    commit(w, begin_at(w, GT_EV_GO_SYSCALL_END, ts));
    g->state = GT_G_RUNNING;
    w->p->state = GT_P_RUNNING;
    if (__builtin_expect(gt_format->after_call != GT_AFTER_CALL_STATUS, 0)) {
        after_call_slow(w);
        return;
    }
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_STATUS_STACK, w->last), g->id);
    p = gt_varint_put(gt_varint_put(p, w->m), GT_G_RUNNING);
    commit(w, gt_varint_put(p, gt_stack_use(g->wait_stack, gt_writer_gen(w))));
    g->seq = 0;
}

void gt_ev_procs_change(struct gt_writer *w, uint64_t n, struct gt_stack *stack)
{
    event2(w, GT_EV_PROCS_CHANGE, n, gt_stack_use(stack, gt_writer_gen(w)));
}

void gt_ev_go_create(struct gt_writer *w, struct gt_g *g, struct gt_stack *new_stack,
                     struct gt_stack *stack)
{
    uint32_t gen = gt_writer_gen(w);
    g->state = GT_G_RUNNABLE;
    g->status_gen = gen;
    g->seq = 0;
    __atomic_store_n(&g->routine, new_stack, __ATOMIC_RELEASE); /* see gt_ev_renew_locked */
    event3(w, GT_EV_GO_CREATE, g->id, gt_stack_use(new_stack, gen), gt_stack_use(stack, gen));
    if (g != &w->g) {
        g->changed = w->last;
        /* release: pairs with gt_ev_is_unstarted's acquire. */
        atomic_store_explicit(&g->unstarted, true, memory_order_release);
    }
}

static void set_started(struct gt_g *g)
{
    atomic_store_explicit(&g->unstarted, false, memory_order_relaxed);
}

void gt_ev_go_forget(struct gt_g *g)
{
    gt_lock(&g->lock, GT_RANK_G);
    set_started(g);
    g->state = GT_G_NONE;
    __atomic_store_n(&g->routine, NULL, __ATOMIC_RELAXED);
    gt_unlock(&g->lock);
}

static void proc_start(struct gt_writer *w)
{
    w->p->state = GT_P_RUNNING;
    uint8_t *p = begin_at(w, GT_EV_PROC_START, now_after(w, w->p->left));
    commit(w, gt_varint_put(gt_varint_put(p, w->p->id), ++w->p->seq));
}

static void go_start_at(struct gt_writer *w, uint64_t ts)
{
    w->g.state = GT_G_RUNNING;
    uint8_t *p = begin_at(w, GT_EV_GO_START, at_after(w, ts, w->g.changed));
    commit(w, gt_varint_put(gt_varint_put(p, w->g.id), ++w->g.seq));
}

static void go_start(struct gt_writer *w)
{
    go_start_at(w, gt_clock_now());
}

/* Writes the statuses that a reused writer, or an earlier generation's goroutine, still lacks. */
static void own_statuses(struct gt_writer *w)
{
    gt_lock(&w->g.lock, GT_RANK_G);
    gt_ev_statuses_locked(w, gt_writer_gen(w));
    set_started(&w->g);
    gt_unlock(&w->g.lock);
}

void gt_ev_thread_start(struct gt_writer *w)
{
    if (!take_p(w))
        return;
    own_statuses(w);
    proc_start(w);
    go_start(w);
    gt_account_begin(w, GT_ACCOUNT_BORN);
    gt_held_begin(w);
    look_for_name(w);
}

void gt_ev_thread_appear(struct gt_writer *w, struct gt_stack *new_stack)
{
    if (!take_p(w))
        return;
    own_statuses(w);
    proc_start(w);
    gt_ev_go_create(w, &w->g, new_stack, NULL);
    go_start(w);
    gt_account_begin(w, GT_ACCOUNT_MET);
    gt_held_begin(w);
    look_for_name(w);
}

void gt_ev_thread_running(struct gt_writer *w)
{
    if (!take_p(w))
        return;
    w->p->state = GT_P_RUNNING;
    w->g.state = GT_G_RUNNING;
    own_statuses(w);
    gt_account_begin(w, GT_ACCOUNT_ALONE);
    gt_held_begin(w);
}

bool gt_ev_go_block(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                    struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    w->g.state = GT_G_WAITING;
    w->g.wait_stack = stack;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_BLOCK, since), reason);
    commit(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    stated(w);
    return true;
}

bool gt_ev_go_stop(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    w->g.state = GT_G_RUNNABLE;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_STOP, since), reason);
    commit(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    return true;
}

void gt_ev_go_syscall(struct gt_writer *w, uint64_t since, struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return;
    w->g.state = GT_G_SYSCALL;
    w->p->state = GT_P_SYSCALL;
    w->g.wait_stack = stack;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_SYSCALL_BEGIN, since), ++w->p->seq);
    commit(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
}

static void unblock_at(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                       uint64_t ts)
{
    target->state = GT_G_RUNNABLE;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GO_UNBLOCK, ts), target->id);
    commit(w,
           gt_varint_put(gt_varint_put(p, ++target->seq), gt_stack_use(stack, gt_writer_gen(w))));
}

static void unblock_other(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    GT_ASSERT("writer.h, rule 3: the lock guards a goroutine's state",
              gt_debug_has_lock(&target->lock));
    unblock_at(w, target, stack, now_after(w, target->stated));
    GT_ASSERT("writer.h, rule 6: an effect is after its cause", w->last > target->stated);
    target->changed = w->last;
}

/* The target's status in the generation first, if it has none there yet. */
static void unblock_waiting(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                            uint32_t gen)
{
    status_g_locked(w, target, NO_M, gen);
    unblock_other(w, target, stack);
}

static uint64_t woken_at(const struct gt_writer *w)
{
    uint64_t now = gt_clock_now();
    return w->woken && w->woken < now ? w->woken : now;
}

bool (*gt_ev_is_taken)(const void *mutex, uint32_t tid);

/* From now on w's thread waits for the mutex of the condition variable. */
static void wait_for_mutex_locked(struct gt_writer *w, uint32_t gen)
{
    uint8_t *p = begin_at(w, GT_EV_GO_START, w->last);
    commit(w, gt_varint_put(gt_varint_put(p, w->g.id), ++w->g.seq));
    p = gt_varint_put(begin_at(w, GT_EV_GO_BLOCK, w->last), GT_REASON_SYNC);
    commit(w, gt_varint_put(p, gt_stack_use(w->g.wait_stack, gen)));
    w->g.state = GT_G_WAITING;
    stated(w);
}

void gt_ev_expire_locked(struct gt_writer *w, uint32_t gen)
{
    uint64_t due = atomic_load_explicit(&w->due, memory_order_relaxed);
    const void *mutex = atomic_load_explicit(&w->due_mutex, memory_order_relaxed);
    if (w->g.state != GT_G_WAITING || !due || due >= gt_clock_now() ||
        !gt_writer_make_room(w, gen, GT_EVENT_ROOM))
        return;
    unblock_at(w, &w->g, w->g.wait_stack, due);
    w->g.changed = w->last;
    atomic_store_explicit(&w->due, 0, memory_order_relaxed);
    if (mutex && gt_ev_is_taken && gt_ev_is_taken(mutex, w->m))
        wait_for_mutex_locked(w, gen);
}

/* A goroutine that goes on takes the name that another thread has given it meanwhile. */
static inline void go_on(struct gt_writer *w)
{
    if (w->g.state == GT_G_RUNNING) {
        tell(w, gt_writer_gen(w));
        look_for_name(w);
    }
}

void gt_ev_go_resume(struct gt_writer *w, struct gt_stack *stack)
{
    own_rewaits(w);
    if (w->g.state == GT_G_SYSCALL)
        syscall_end(w, gt_clock_now());
    if (w->g.state == GT_G_WAITING)
        unblock_at(w, &w->g, stack, woken_at(w));
    w->woken = 0;
    if (w->g.state == GT_G_RUNNABLE)
        go_start(w);
    go_on(w);
}

void gt_ev_go_resume_since(struct gt_writer *w, struct gt_stack *stack, uint64_t since)
{
    own_rewaits(w);
    if (w->g.state == GT_G_SYSCALL)
        syscall_end(w, since);
    if (w->g.state == GT_G_WAITING)
        unblock_at(w, &w->g, stack, since);
    if (w->g.state == GT_G_RUNNABLE)
        go_start_at(w, since);
    go_on(w);
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
    gt_texts_retire(w, gt_writer_gen(w));
    gt_writer_retire(w, gt_writer_gen(w));
}

bool gt_ev_go_unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    uint32_t gen = gt_writer_gen(w);
    if (!own_rewaits(w) || !lock_g(target))
        return true;
    bool current = target->status_gen <= gen; /* rule 4 */
    if (current && target->state == GT_G_WAITING)
        unblock_waiting(w, target, stack, gen);
    gt_unlock(&target->lock);
    return current;
}

/* When a goroutine that has been unblocked, and has n rewaits already, waits again. */
static uint64_t rewait_ts(const struct gt_g *g, uint32_t n)
{
    uint64_t ts = g->changed + 2 + gt_clock_units(g->behind + 2 * n);
    return ts > g->stated ? ts : g->stated;
}

/* Whether there is room for another rewait. The memory of rewaits stays with the writer. */
static bool has_room_locked(struct gt_g *g, uint32_t n)
{
    static struct gt_arena arena = {.boxed = true, .align = _Alignof(struct gt_rewaits)};
    if (!g->rewait && (g->rewait = gt_arena_alloc(&arena, sizeof *g->rewait)))
        gt_box_push(GT_BOX_REWAITS, g->rewait, &g->rewait->next);
    return g->rewait && n < GT_REWAITS_MAX;
}

static struct gt_writer *writer_of(struct gt_g *g)
{
    return (struct gt_writer *)((char *)g - offsetof(struct gt_writer, g));
}

/* g was unblocked, and waits again. n: how many rewaits it has already. */
static void rewait_locked(struct gt_g *g, uint32_t n, uint32_t gen, struct gt_stack *stack)
{
    g->stated = rewait_ts(g, n);
    g->rewait->g = g->id;
    g->rewait->m = writer_of(g)->m;
    g->rewait->at[n] =
        (struct gt_rewait){.ts = g->stated, .stack = stack, .gen = gen, .seq = ++g->seq};
    set_rewaits_locked(g, n + 1);
}

/*
 * g's thread was never woken, and goes on waiting; unless g is not runnable, or its thread's stream
 * cannot say so.
 */
static void sleep_on_locked(struct gt_g *g)
{
    uint32_t gen = gt_writer_gen(writer_of(g)), n = rewaits_of(g);
    if (g->state != GT_G_RUNNABLE || g->status_gen > gen)
        return;
    if (!gt_gen_is_mute(gen)) {
        if (g->own_gen != gen || g->status_gen != gen || !has_room_locked(g, n))
            return;
        rewait_locked(g, n, gen, g->wait_stack);
    }
    g->state = GT_G_WAITING;
}

void gt_ev_go_sleep_on(struct gt_g *target)
{
    if (!lock_g(target))
        return;
    sleep_on_locked(target);
    gt_unlock(&target->lock);
}

bool (*gt_ev_is_asleep)(struct gt_writer *w);

bool gt_ev_look_asleep_locked(struct gt_writer *w)
{
    enum { WAKING_NS = 1000000 };
    if (w->g.state != GT_G_RUNNABLE || !gt_ev_is_asleep ||
        gt_clock_now() < w->g.changed + gt_clock_units(WAKING_NS))
        return false;
    /* A thread that waits for the end of its switch is awake, although the kernel says otherwise.
     */
    if (gt_ev_is_asleep(w) && !(atomic_load(&w->gen) & GT_GEN_WAITED))
        sleep_on_locked(&w->g);
    return true;
}

bool gt_ev_go_unblock_again(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack)
{
    uint32_t gen = gt_writer_gen(w);
    if (target == &w->g)
        return true; /* in a signal handler: the thread is awake */
    if (!own_rewaits(w) || !lock_g(target))
        return true;
    uint32_t n = rewaits_of(target);
    bool current = target->status_gen <= gen;
    if (current && target->state == GT_G_WAITING) {
        unblock_waiting(w, target, stack, gen);
    } else if (current && target->state == GT_G_RUNNABLE && target->own_gen == gen &&
               !gt_gen_is_mute(gen) && has_room_locked(target, n)) {
        rewait_locked(target, n, gen, target->wait_stack);
        unblock_other(w, target, stack);
    }
    gt_unlock(&target->lock);
    return current;
}

bool gt_ev_go_unblock_and_wait(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                               struct gt_stack *then)
{
    uint32_t gen = gt_writer_gen(w);
    if (!own_rewaits(w) || !lock_g(target))
        return true;
    uint32_t n = rewaits_of(target);
    bool current = target->status_gen <= gen && target->own_gen == gen;
    if (current && target->state == GT_G_WAITING && has_room_locked(target, n)) {
        if (!gt_gen_is_mute(gen)) {
            unblock_waiting(w, target, stack, gen);
            rewait_locked(target, n, gen, then);
            target->state = GT_G_WAITING;
        }
        target->wait_stack = then;
        atomic_store_explicit(&writer_of(target)->due, 0, memory_order_relaxed);
    }
    gt_unlock(&target->lock);
    return current;
}

void gt_ev_gc(struct gt_writer *w, const struct gt_collection *gc)
{
    if (w->g.state != GT_G_RUNNING || !w->p)
        return;
    uint64_t seq = ++collections.seq, least = collections.end + 2 + gt_clock_units(behind(w));
    uint64_t begin_ts = gc->begin > least ? gc->begin : least;
    collections.seq++;
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_GC_BEGIN, begin_ts), seq);
    commit(w, gt_varint_put(p, 0));
    for (uint32_t i = 0; i < gc->pauses; i++) {
        p = gt_varint_put(begin_at(w, GT_EV_STW_BEGIN, gc->pause[i].begin), GT_REASON_GC);
        commit(w, gt_varint_put(p, 0));
        commit(w, begin_at(w, GT_EV_STW_END, gc->pause[i].end));
    }
    commit(w, gt_varint_put(begin_at(w, GT_EV_GC_END, gc->end), seq + 1));
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
    commit(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    return true;
}

void gt_ev_lock(struct gt_writer *w, uint64_t since, struct gt_string *what, struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return;
    uint32_t gen = gt_writer_gen(w);
    uint8_t *p = gt_varint_put(begin_at(w, GT_EV_USER_LOG, since), 0);
    p = gt_varint_put(gt_varint_put(p, gt_held_category(what)), gt_string_use(what, gen));
    commit(w, gt_varint_put(p, gt_stack_use(stack, gen)));
}

bool gt_ev_heap_alloc(struct gt_writer *w, uint64_t at, uint64_t bytes)
{
    own_rewaits(w);
    if (w->p)
        commit(w, gt_varint_put(begin_at(w, GT_EV_HEAP_ALLOC, at), bytes));
    return w->p != NULL;
}

bool gt_ev_heap_goal(struct gt_writer *w, uint64_t bytes)
{
    if (w->p)
        event1(w, GT_EV_HEAP_GOAL, bytes);
    return w->p != NULL;
}
