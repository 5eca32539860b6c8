/* See switch.h. */
#include "switch.h"

#include <linux/membarrier.h>
#include <sched.h>

static _Atomic(struct gt_writer *) writers; /* push only */

static long membarrier(int command)
{
    return gt_syscall(SYS_membarrier, command, 0, 0);
}

void gt_switch_init(void)
{
    bool works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    atomic_store(&gt_gen.fence, works ? 0 : 1);
}

void gt_writer_register(struct gt_writer *w)
{
    w->next = atomic_load_explicit(&writers, memory_order_relaxed);
    /* release: gt_switch_all, walking from here, sees an initialized writer. */
    while (!atomic_compare_exchange_weak_explicit(&writers, &w->next, w, memory_order_seq_cst,
                                                  memory_order_relaxed))
        ;
}

void gt_switch_retire(struct gt_writer *w, uint32_t gen)
{
    struct gt_buf *buf = w->buf;
    if (!buf)
        return;
    buf->used = (uint32_t)(w->pos - buf->data);
    buf->gen = gen;
    buf->m = w->m;
    w->buf = NULL;
    w->pos = w->end = NULL;
    if (buf->used)
        gt_buffers_push(buf);
    else
        gt_buffers_put(buf);
}

void gt_switch_install(struct gt_writer *w, struct gt_buf *buf)
{
    buf->ts = w->last; /* not now: the next events may be rewaits, from earlier */
    buf->cuts = 0;
    w->buf = buf;
    w->pos = buf->data;
    w->end = buf->data + GT_PIECE;
    w->piece = w->events;
}

/* Ends a switch. release: whoever sees the number sees the writer as the switcher left it. */
static void settle(struct gt_writer *w, uint32_t gen)
{
    uint32_t was = atomic_exchange_explicit(&w->gen, gen, memory_order_acq_rel);
    if (was & GT_GEN_WAITED)
        gt_futex_wake(&w->gen, INT_MAX);
}

/* Sleeps while the switch seen as `gen` is under way; not longer than timeout_ns, unless -1. */
static void wait_settled(struct gt_writer *w, uint32_t gen, int64_t timeout_ns)
{
    if ((gen & GT_GEN_WAITED) || atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_WAITED))
        gt_futex_wait(&w->gen, gen | GT_GEN_WAITED, timeout_ns);
}

static bool settled_within(struct gt_writer *w, uint32_t gen, uint64_t ns)
{
    uint64_t start = gt_clock_monotonic_raw();
    while ((gen & GT_GEN_SWITCHING) && gt_clock_monotonic_raw() - start < ns) {
        wait_settled(w, gen, (int64_t)ns);
        gen = atomic_load_explicit(&w->gen, memory_order_acquire);
    }
    return !(gen & GT_GEN_SWITCHING);
}

/* Whether the caller is now w's switcher. Full barrier: see gt_switch_self. */
static bool claim(struct gt_writer *w, uint32_t gen)
{
    return atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_SWITCHING);
}

/*
 * The old generation's last events. The lock is kept until the status in the next one stands: an
 * unblocker still in the old one must not come between (rule 4).
 */
static void leave_generation_locked(struct gt_writer *w, uint32_t old)
{
    gt_ev_close_locked(w, old);
    gt_texts_retire(w, old);
    gt_switch_retire(w, old);
}

/* Moves w, claimed in generation old, to next. false: no memory, or whoever has its lock sleeps. */
static bool move(struct gt_writer *w, uint32_t old, uint32_t next)
{
    struct gt_buf *fresh = gt_buffers_get(true);
    if (!fresh)
        return false;
    if (!gt_lock_within(&w->g.lock, GT_LOCK_PATIENCE_NS)) {
        gt_buffers_put(fresh);
        return false;
    }
    leave_generation_locked(w, old);
    gt_switch_install(w, fresh);
    gt_ev_statuses_locked(w, next);
    gt_unlock(&w->g.lock);
    return true;
}

bool gt_switch_self(struct gt_writer *w)
{
    int saved = errno;
    bool ok = true;
    uint32_t old = atomic_load_explicit(&w->gen, memory_order_acquire);
    if (old & GT_GEN_SWITCHING) {
        ok = settled_within(w, old, GT_LOCK_PATIENCE_NS);
    } else if (claim(w, old)) {
        /* After the claim: either the drain side sees that, or we see what it announced. */
        uint32_t next = atomic_load(&gt_gen.current);
        if (next && next != old) {
            ok = move(w, old, next);
            old = ok ? next : old;
        }
        settle(w, old);
    }
    errno = saved;
    return ok;
}

/*
 * The owner is inside only for an event or two; but it may have been suspended there, for as long
 * as a collector takes.
 */
static void await_leave(struct gt_writer *w)
{
    static const struct timespec ms = {0, 1000000};
    /* acquire: pairs with gt_writer_leave */
    for (int i = 0; atomic_load_explicit(&w->busy, memory_order_acquire); i++) {
        if (i < 1000)
            sched_yield();
        else
            gt_syscall(SYS_nanosleep, &ms, NULL);
    }
}

/* The drain side's half for one writer, which it has claimed in generation old. */
static void switch_silent(struct gt_writer *w, uint32_t old, uint32_t next, struct gt_buf *scratch,
                          void (*emit)(void *, struct gt_buf *), void *arg)
{
    await_leave(w);
    gt_lock(&w->g.lock);
    leave_generation_locked(w, old);
    if (next && scratch && w->p && w->p->state != GT_P_IDLE) {
        gt_switch_install(w, scratch);
        gt_ev_statuses_locked(w, next);
        scratch->used = (uint32_t)(w->pos - scratch->data);
        scratch->gen = next;
        scratch->m = w->m;
        w->buf = NULL;
        w->pos = w->end = NULL;
        if (scratch->used)
            emit(arg, scratch);
    }
    gt_unlock(&w->g.lock);
    settle(w, next);
}

void gt_switch_all(uint32_t next, void (*emit)(void *arg, struct gt_buf *batch), void *arg)
{
    atomic_store(&gt_gen.current, next);
    if (!atomic_load(&gt_gen.fence))
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    struct gt_buf *scratch = gt_buffers_get(true);
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next) {
        uint32_t gen = atomic_load(&w->gen);
        while (gen != next) {
            if (gen & GT_GEN_SWITCHING)
                wait_settled(w, gen, -1);
            else if (claim(w, gen))
                switch_silent(w, gen, next, scratch, emit, arg);
            gen = atomic_load(&w->gen);
        }
    }
    if (scratch)
        gt_buffers_put(scratch);
}

uint64_t gt_switch_events(void)
{
    uint64_t n = 0;
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next)
        n += w->events;
    return n;
}

void gt_switch_after_fork(void)
{
    atomic_store(&writers, NULL);
}
