/* See states.h. */
#include "states.h"

#include "put.h"

#include "encoder/base/arena.h"
#include "encoder/base/box.h"
#include "encoder/base/clock.h"

/* The own thread has just written the goroutine's state. */
static void stated(struct gt_writer *w)
{
    w->g.stated = w->last;
    w->g.behind = gt_put_early(w);
}

bool gt_ev_go_block(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                    struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    w->g.state = GT_G_WAITING;
    w->g.wait_stack = stack;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_BLOCK, since), reason);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
    stated(w);
    return true;
}

static void go_syscall(struct gt_writer *w, uint64_t since, struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return;
    w->g.state = GT_G_SYSCALL;
    w->p->state = GT_P_SYSCALL;
    w->g.wait_stack = stack;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_SYSCALL_BEGIN, since), ++w->p->seq);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(stack, gt_writer_gen(w))));
}

void gt_call_write(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                   struct gt_stack *stack)
{
    if (reason)
        gt_ev_go_block(w, since, reason, stack);
    else
        go_syscall(w, since, stack);
}

struct gt_stack *(*gt_call_stack)(struct gt_writer *w);

/* Returns NULL if the call has its stack already. */
static struct gt_stack *find_stack(struct gt_writer *w)
{
    bool has = atomic_load_explicit(&w->call.stack, memory_order_relaxed);
    return has || !gt_call_stack ? NULL : gt_call_stack(w);
}

void gt_call_show(struct gt_writer *w)
{
    /* acquire: the rest of the announcement. */
    uint64_t since = atomic_load_explicit(&w->call.since, memory_order_acquire);
    if (!since || !gt_writer_make_room(w, gt_writer_gen(w), GT_EVENT_ROOM))
        return;
    struct gt_stack *found = find_stack(w);
    /* acquire: pairs with gt_call_keep's release. A kept stack is right; `found` may not be. */
    struct gt_stack *kept = atomic_load_explicit(&w->call.stack, memory_order_acquire);
    atomic_store_explicit(&w->call.since, 0, memory_order_relaxed);
    bool ends = atomic_load_explicit(&w->call.due_of, memory_order_acquire) == since;
    atomic_store_explicit(&w->due_mutex, NULL, memory_order_relaxed);
    atomic_store_explicit(&w->due,
                          ends ? atomic_load_explicit(&w->call.due, memory_order_relaxed) : 0,
                          memory_order_relaxed);
    gt_call_write(w, since, w->call.reason, kept ? kept : found);
}

void gt_call_keep(struct gt_writer *w)
{
    if (!gt_call_is_announced(w) || gt_writer_gone(w)) /* then its stacks may be gone, too */
        return;
    struct gt_stack *stack = find_stack(w);
    if (stack)
        atomic_store_explicit(&w->call.stack, stack, memory_order_release);
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

void gt_ev_status_locked(struct gt_writer *w, struct gt_g *g, uint64_t m, uint32_t gen)
{
    GT_ASSERT("writer.h, rule 3: the lock guards a goroutine's state", gt_debug_has_lock(&g->lock));
    GT_ASSERT("writer.h, rule 4: no earlier generation than where the status stands",
              g->status_gen <= gen || g->state == GT_G_NONE);
    if (g->status_gen == gen || g->state == GT_G_NONE)
        return;
    struct gt_stack *stack = status_stack(g, gen);
    uint8_t *p = gt_put_at(w, stack ? GT_EV_GO_STATUS_STACK : GT_EV_GO_STATUS, gt_clock_now());
    p = gt_varint_put(gt_varint_put(gt_varint_put(p, g->id), m), g->state);
    gt_put_end(w, stack ? gt_varint_put(p, gt_stack_use(stack, gen)) : p);
    g->status_gen = gen;
    g->seq = 0;
    if (g != &w->g)
        g->changed = w->last;
}

static void status_p(struct gt_writer *w, uint32_t gen)
{
    if (!w->p || w->p->status_gen == gen)
        return;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_PROC_STATUS, gt_clock_now()), w->p->id);
    gt_put_end(w, gt_varint_put(p, w->p->state));
    w->p->status_gen = gen;
    w->p->seq = 0;
}

void gt_ev_tell(struct gt_writer *w, uint32_t gen)
{
    uint32_t first = atomic_load_explicit(&gt_gen.first, memory_order_relaxed);
    if (w->told_gen >= first || gen < first)
        return;
    uint32_t n = atomic_exchange(&gt_gen.procs, 0);
    if (n) {
        uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_PROCS_CHANGE, gt_clock_now()), n);
        gt_put_end(w, gt_varint_put(p, 0));
    }
    if (w->label) {
        uint8_t *p = gt_put_at(w, GT_EV_GO_LABEL, gt_clock_now());
        gt_put_end(w, gt_varint_put(p, gt_string_use(w->label, gen)));
    }
    w->told_gen = gen;
}

void gt_ev_statuses_locked(struct gt_writer *w, uint32_t gen)
{
    status_p(w, gen);
    bool on_thread = w->g.state == GT_G_RUNNING || w->g.state == GT_G_SYSCALL;
    gt_ev_status_locked(w, &w->g, on_thread ? w->m : GT_NO_M, gen);
    w->g.own_gen = gen;
    stated(w);
    if (w->g.state == GT_G_RUNNING && w->p)
        gt_ev_tell(w, gen);
}

void gt_ev_status_unstarted(struct gt_writer *w, struct gt_g *g, uint32_t gen)
{
    gt_lock(&g->lock, GT_RANK_G);
    if (atomic_load_explicit(&g->unstarted, memory_order_relaxed))
        gt_ev_status_locked(w, g, GT_NO_M, gen);
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
        uint8_t *p = gt_put_at(w, GT_EV_GO_START, r.ts);
        gt_put_end(w, gt_varint_put(gt_varint_put(p, g->id), r.seq));
        p = gt_varint_put(gt_put_at(w, GT_EV_GO_BLOCK, r.ts), GT_REASON_SYNC);
        gt_put_end(w, gt_varint_put(p, gt_stack_use(r.stack, gen)));
    }
    set_rewaits_locked(g, kept);
    stated(w);
}

bool gt_ev_may_rewait_locked(struct gt_g *g)
{
    static struct gt_arena arena = {.boxed = true, .align = _Alignof(struct gt_rewaits)};
    if (!g->rewait && (g->rewait = gt_arena_alloc(&arena, sizeof *g->rewait)))
        gt_box_push(GT_BOX_REWAITS, g->rewait, &g->rewait->next);
    return g->rewait && rewaits_of(g) < GT_REWAITS_MAX;
}

void gt_ev_rewait_locked(struct gt_g *g, uint32_t gen, struct gt_stack *stack)
{
    uint32_t n = rewaits_of(g);
    uint64_t ts = g->changed + 2 + gt_clock_units(g->behind + 2 * n);
    g->stated = ts > g->stated ? ts : g->stated;
    g->rewait->g = g->id;
    g->rewait->m = gt_ev_writer_of(g)->m;
    g->rewait->at[n] =
        (struct gt_rewait){.ts = g->stated, .stack = stack, .gen = gen, .seq = ++g->seq};
    set_rewaits_locked(g, n + 1);
}

void gt_ev_sleep_on_locked(struct gt_g *g)
{
    uint32_t gen = gt_writer_gen(gt_ev_writer_of(g));
    if (g->state != GT_G_RUNNABLE || g->status_gen > gen)
        return;
    if (!gt_gen_is_mute(gen)) {
        if (g->own_gen != gen || g->status_gen != gen || !gt_ev_may_rewait_locked(g))
            return;
        gt_ev_rewait_locked(g, gen, g->wait_stack);
    }
    g->state = GT_G_WAITING;
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
        gt_ev_sleep_on_locked(&w->g);
    return true;
}

bool (*gt_ev_is_taken)(const void *mutex, uint32_t tid);

/* From now on w's thread waits for the mutex of the condition variable. */
static void wait_for_mutex_locked(struct gt_writer *w, uint32_t gen)
{
    uint8_t *p = gt_put_at(w, GT_EV_GO_START, w->last);
    gt_put_end(w, gt_varint_put(gt_varint_put(p, w->g.id), ++w->g.seq));
    p = gt_varint_put(gt_put_at(w, GT_EV_GO_BLOCK, w->last), GT_REASON_SYNC);
    gt_put_end(w, gt_varint_put(p, gt_stack_use(w->g.wait_stack, gen)));
    w->g.state = GT_G_WAITING;
    stated(w);
}

/*
 * Ends a wait that has timed out, if the thread has had no CPU since. The goroutine becomes
 * runnable at the time of the timeout, in the old generation. A condition variable's waiter whose
 * mutex another thread holds waits for the mutex instead.
 */
static void expire_locked(struct gt_writer *w, uint32_t gen)
{
    uint64_t due = atomic_load_explicit(&w->due, memory_order_relaxed);
    const void *mutex = atomic_load_explicit(&w->due_mutex, memory_order_relaxed);
    if (w->g.state != GT_G_WAITING || !due || due >= gt_clock_now() ||
        !gt_writer_make_room(w, gen, GT_EVENT_ROOM))
        return;
    gt_put_unblock(w, &w->g, w->g.wait_stack, due);
    w->g.changed = w->last;
    atomic_store_explicit(&w->due, 0, memory_order_relaxed);
    if (mutex && gt_ev_is_taken && gt_ev_is_taken(mutex, w->m))
        wait_for_mutex_locked(w, gen);
}

/*
 * Renews stacks and label (renewal.h). A thread that is about to create w's may store a routine at
 * this moment: the newer one stays.
 */
static void renew_locked(struct gt_writer *w)
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

void gt_ev_last_locked(struct gt_writer *w, uint32_t gen)
{
    gt_ev_rewaits_locked(w, gen);
    gt_call_show(w);
    expire_locked(w, gen);
    renew_locked(w);
}
