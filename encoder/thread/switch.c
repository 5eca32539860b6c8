/* See switch.h. */
#include "switch.h"

#include "account.h"
#include "call.h"
#include "events.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/urgent.h"

#include <linux/membarrier.h>
#include <string.h>

static _Atomic(struct gt_writer *) writers; /* push only */

void (*gt_switch_before)(void);

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

/* Ends a switch. release: a thread that sees the number sees the writer as the switcher left it. */
static void settle(struct gt_writer *w, uint32_t gen)
{
    uint32_t was = atomic_exchange_explicit(&w->gen, gen, memory_order_acq_rel);
    if (was & GT_GEN_WAITED)
        gt_futex_wake(&w->gen, INT_MAX);
}

/* Sleeps while the switch seen as `gen` is under way, timeout_ns at most; -1: no limit. */
static void wait_settled(struct gt_writer *w, uint32_t gen, int64_t timeout_ns)
{
    if ((gen & GT_GEN_WAITED) || atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_WAITED))
        gt_futex_wait(&w->gen, gen | GT_GEN_WAITED, timeout_ns);
}

/* The drain side may be waiting for a lock that a standing thread holds. */
static bool settled_within(struct gt_writer *w, uint32_t gen, uint64_t ns)
{
    enum { SLICES = 10 };
    uint64_t start = gt_clock_monotonic_raw(), limit = ns;
    while ((gen & GT_GEN_SWITCHING) && gt_clock_monotonic_raw() - start < limit) {
        bool stands = w->may_lose && gt_any_stands();
        limit = stands ? GT_STANDING_PATIENCE_NS : ns;
        wait_settled(w, gen, stands ? GT_STANDING_PATIENCE_NS : (int64_t)ns / SLICES);
        gen = atomic_load_explicit(&w->gen, memory_order_acquire);
    }
    return !(gen & GT_GEN_SWITCHING);
}

static bool settled_awake(struct gt_writer *w, uint32_t gen, uint64_t ns)
{
    enum { TRIES = 100 };
    uint64_t start = gt_clock_monotonic_raw();
    while ((gen & GT_GEN_SWITCHING) && gt_clock_monotonic_raw() - start < ns) {
        for (int i = 0; i < TRIES; i++)
            gt_arch_pause();
        gen = atomic_load_explicit(&w->gen, memory_order_acquire);
    }
    return !(gen & GT_GEN_SWITCHING);
}

/*
 * Spins for an urgent thread. The drain side needs some microseconds on another CPU; on this CPU it
 * runs, being more urgent now. If it could not be made so, the thread spins once for each switch.
 */
static bool settled_urgent(struct gt_writer *w, uint32_t gen)
{
    enum { NS = 1000000 };
    uint32_t number = gen & ~GT_GEN_WAITED;
    gt_urgent_lend();
    bool settled = w->gave_up != number && settled_awake(w, gen, NS);
    w->gave_up = settled ? 0 : number;
    return settled;
}

/* Spins first: a thread that sleeps may queue for a CPU afterwards, for milliseconds. */
static bool await_settled(struct gt_writer *w, uint32_t gen)
{
    enum { NS = 20000 };
    bool urgent = gt_urgent();
    if (urgent ? settled_urgent(w, gen) : settled_awake(w, gen, NS))
        return true;
    return !(urgent && w->may_lose) && settled_within(w, gen, GT_LOCK_PATIENCE_NS);
}

/* Makes the caller w's switcher. false: it is not. Full barrier: see claim_and_move_locked. */
static bool claim(struct gt_writer *w, uint32_t gen)
{
    GT_ASSERT("writer.h, rule 2: no thread moves a writer that has pinned a generation",
              !gt_debug_pinned());
    return atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_SWITCHING);
}

/*
 * Writes the old generation's last events. The caller keeps the lock until the status in the next
 * generation stands: an unblocker that is still in the old one must not come between (rule 4).
 */
static void end_generation_locked(struct gt_writer *w, uint32_t old)
{
    GT_ASSERT("writer.h, rule 2: who moves a writer has claimed it",
              atomic_load(&w->gen) & GT_GEN_SWITCHING);
    gt_ev_rewaits_locked(w, old);
    if (gt_call_is_announced(w) && gt_writer_make_room(w, old, GT_EVENT_ROOM))
        gt_call_show(w);
    gt_ev_expire_locked(w, old);
    gt_ev_renew_locked(w);
    gt_account_move(w);
    gt_texts_retire(w, old);
    gt_writer_retire(w, old);
    if (gt_gen_is_mute(old))
        w->events = w->events_before;
    else
        w->events_before = w->events;
}

/* Moves w, claimed in generation old, to next. false: no memory. */
static bool move_locked(struct gt_writer *w, uint32_t old, uint32_t next)
{
    struct gt_buf *fresh = gt_gen_is_mute(next) ? NULL : gt_buffers_get_first(true);
    if (!fresh && !gt_gen_is_mute(next))
        return false;
    end_generation_locked(w, old);
    if (fresh) {
        gt_writer_install(w, fresh, next);
        gt_ev_statuses_locked(w, next);
    }
    return true;
}

static bool claim_and_move_locked(struct gt_writer *w, uint32_t old)
{
    if (!claim(w, old))
        return true;
    /* After the claim: either the drain side sees the claim, or we see what it announced. */
    uint32_t next = atomic_load(&gt_gen.current);
    bool moves = next && next != old, ok = !moves || move_locked(w, old, next);
    settle(w, moves && ok ? next : old);
    return ok;
}

/* Locks with signals held, but waits without. false: the lock holder stands still. */
static bool lock_held(struct gt_writer *w, uint64_t *signals)
{
    struct gt_lock *lock = &w->g.lock;
    *signals = gt_signals_hold();
    if (gt_trylock(lock, GT_RANK_G))
        return true;
    gt_signals_release(*signals);
    if (!gt_lock_within(lock, GT_RANK_G, w->may_lose ? GT_HOOK_PATIENCE_NS : GT_LOCK_PATIENCE_NS))
        return false;
    *signals = gt_signals_hold();
    return true;
}

/* Holds signals: a handler that jumped, or ended the process, would leave w claimed for ever. */
static bool move_self(struct gt_writer *w, uint32_t old)
{
    uint64_t signals;
    if (!lock_held(w, &signals))
        return false;
    bool ok = claim_and_move_locked(w, old);
    gt_unlock(&w->g.lock);
    gt_signals_release(signals);
    return ok;
}

/*
 * The owner's half of a switch; not busy. Afterwards w is in a newer generation, or the drain side,
 * which was switching it, is done. false: no memory for a buffer, or a thread that does not go on
 * holds what the owner needs (GT_LOCK_PATIENCE_NS).
 */
static bool switch_self(struct gt_writer *w)
{
    int saved = errno;
    bool ok;
    uint32_t old = atomic_load_explicit(&w->gen, memory_order_acquire);
    if (old == GT_GEN_GONE)
        ok = false;
    else if (old & GT_GEN_SWITCHING)
        ok = await_settled(w, old);
    else
        ok = move_self(w, old);
    errno = saved;
    return ok;
}

static bool enter_slow(struct gt_writer *w, bool at_once)
{
    uint64_t waiting_since = 0;
    for (;;) {
        uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
        if (gen == 0) {
            gt_writer_unpin(w);
            return false;
        }
        if (atomic_load_explicit(&w->gen, memory_order_acquire) != gen) {
            gt_writer_unpin(w); /* rule 2: not busy while switching */
            if (!switch_self(w))
                return false;
        } else if (gt_writer_refresh(w, at_once)) {
            gt_call_show(w); /* rule 5 */
            return true;
        } else if (at_once || !gt_writer_wait_for_room(w, &waiting_since)) {
            gt_writer_unpin(w);
            return false;
        }
        gt_debug_pin(w);
        atomic_store_explicit(&w->busy, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst); /* rule 1, once more */
    }
}

bool gt_writer_pin_slow(struct gt_writer *w, bool at_once)
{
    bool entered = enter_slow(w, at_once);
    if (!entered && atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0 &&
        !gt_writer_gone(w))
        gt_lost();
    return entered;
}

/* Where the drain side writes other threads' statuses. scratch NULL: none are due. */
struct emitter {
    struct gt_buf *scratch;
    uint32_t gen;
    gt_switch_emit_fn *emit;
    uint32_t looks; /* so many more threads may this switch ask the kernel about */
};

/*
 * Emits the contents of w's buffer, which is the scratch buffer, as a batch of thread m. The
 * scratch buffer itself is of no generation: the black box would have the statuses twice.
 */
static void emit_scratch(struct gt_writer *w, uint32_t m, const struct emitter *e)
{
    e->scratch->used = (uint32_t)(w->pos - e->scratch->data);
    e->scratch->m = m;
    gt_writer_release(w);
    if (e->scratch->used)
        e->emit(e->gen, e->scratch);
}

static _Atomic uint64_t deadline;

void gt_switch_set_deadline(uint64_t ns)
{
    atomic_store(&deadline, ns);
}

static bool is_late(void)
{
    uint64_t at = atomic_load(&deadline);
    return at && gt_clock_monotonic_raw() > at;
}

/*
 * Waits for the owner's unpin. It is inside only for an event or two, but it may have been
 * suspended there, for as long as a collector takes. false: the owner had time enough and has
 * jumped, it has ended, or the deadline has passed.
 */
static bool await_unpin(struct gt_writer *w)
{
    enum { YIELDS = 1000, JUMPED_MS = 100 };
    static const struct timespec ms = {0, 1000000};
    /* acquire: pairs with gt_writer_unpin */
    for (int i = 0; atomic_load_explicit(&w->busy, memory_order_acquire); i++) {
        if (atomic_load_explicit(&w->torn, memory_order_acquire)) /* pairs with is_torn */
            return false;
        if (i < YIELDS)
            gt_syscall(SYS_sched_yield);
        else if ((i > YIELDS + JUMPED_MS && atomic_load(&w->jumped)) || is_late())
            return false;
        else
            gt_syscall(SYS_nanosleep, &ms, NULL);
    }
    return true;
}

/* Waits while the lock holder is suspended. false: it may have jumped, or the deadline is over. */
static bool lock_patiently(struct gt_lock *lock)
{
    bool locked;
    do
        locked = gt_lock_within(lock, GT_RANK_G, GT_LOCK_PATIENCE_NS);
    while (!locked && !atomic_load(&gt_any_jumped) && !is_late());
    return locked;
}

static void push_copy(struct gt_buf *buf, uint32_t used, uint32_t m, uint32_t gen)
{
    struct gt_buf *copy = used ? gt_buffers_get(true) : NULL;
    if (!copy)
        return;
    copy->used = used;
    copy->cuts = buf->cuts;
    memcpy(copy->cut, buf->cut, sizeof copy->cut);
    memcpy(copy->data, buf->data, used);
    buf->gen = 0; /* the copy has its events */
    gt_buffers_claim(copy, gen, m, buf->ts);
    gt_buffers_push(copy);
}

/*
 * Saves the events of a writer that is given up, in generation old. The writer keeps its buffers:
 * should its thread come back after all, it does no harm there.
 */
static void salvage(const struct gt_writer *w, uint32_t old)
{
    struct gt_buf *buf = w->buf, *texts = w->texts.buf;
    size_t used = buf ? (uintptr_t)w->pos - (uintptr_t)buf->data : 0;
    if (buf && used <= gt_buffers_room(buf)) /* else the owner was setting buf and pos */
        push_copy(buf, (uint32_t)used, w->m, old);
    if (texts && !gt_gen_is_mute(old))
        push_copy(texts, texts->used, texts->m, old);
}

/* The drain side's half for one writer, which it has claimed in generation old. */
static void switch_silent(struct gt_writer *w, uint32_t old, uint32_t next, struct emitter *e)
{
    if (!await_unpin(w) || !lock_patiently(&w->g.lock)) {
        if (!atomic_load(&w->jumped))
            gt_lost(); /* else gt_writer_jumped has counted it */
        salvage(w, old);
        gt_era_pin_all(); /* w's state is not renewed any more */
        settle(w, GT_GEN_GONE);
        return;
    }
    if (e->looks && !is_late())
        e->looks -= gt_ev_look_asleep_locked(w);
    end_generation_locked(w, old);
    if (e->scratch && w->p && w->p->state != GT_P_IDLE) {
        gt_writer_install(w, e->scratch, 0);
        gt_ev_statuses_locked(w, e->gen);
        emit_scratch(w, w->m, e);
        if (!next || gt_gen_is_mute(next))
            w->events_before = w->events; /* the last ones of the file */
    }
    gt_unlock(&w->g.lock);
    settle(w, next);
}

/*
 * Writes the statuses of goroutines whose threads have not begun. A reader that starts here must
 * hear of them now. No creator is in an older generation any more.
 */
static void tell_unstarted(const struct emitter *e)
{
    static struct gt_writer teller;
    for (struct gt_writer *w = atomic_load(&writers); w && e->scratch; w = w->next) {
        if (!gt_ev_is_unstarted(&w->g))
            continue;
        teller.last = 0; /* it may be the parent process's */
        gt_writer_install(&teller, e->scratch, 0);
        gt_ev_status_unstarted(&teller, &w->g, e->gen);
        emit_scratch(&teller, (uint32_t)gt_syscall(SYS_getpid), e);
    }
}

void gt_switch_all(uint32_t next, uint32_t told, gt_switch_emit_fn *emit)
{
    enum { LOOKS = 256 };
    GT_ASSERT_DRAIN_SIDE();
    if (gt_switch_before)
        gt_switch_before();
    gt_urgent_working(true);
    atomic_store(&gt_gen.current, next);
    if (atomic_load(&gt_gen.fence))
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the writers' */
    else
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    struct emitter e = {told ? gt_buffers_get(true) : NULL, told, emit, LOOKS};
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next) {
        uint32_t gen = atomic_load(&w->gen);
        while (gen != next && gen != GT_GEN_GONE) {
            if (gen & GT_GEN_SWITCHING)
                wait_settled(w, gen, -1);
            else if (claim(w, gen))
                switch_silent(w, gen, next, &e);
            gen = atomic_load(&w->gen);
        }
    }
    tell_unstarted(&e);
    if (e.scratch)
        gt_buffers_put(e.scratch);
    gt_urgent_working(false);
    gt_urgent_give_back();
}

static void note_jumped(struct gt_writer *w)
{
    bool jumped = atomic_load_explicit(&w->jumped, memory_order_relaxed);
    if (jumped && !w->jump_noted)
        gt_era_pin_all();
    w->jump_noted = jumped;
}

bool gt_switch_all_outside(uint32_t mark, bool (*inside)(const struct gt_writer *w))
{
    bool all = true;
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next) {
        if (w->outside == mark)
            continue;
        if (!inside(w))
            w->outside = mark;
        else
            note_jumped(w);
        all &= w->outside == mark || w->jump_noted;
    }
    return all;
}

void gt_switch_each(void (*fn)(void *arg, struct gt_writer *w), void *arg)
{
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next)
        fn(arg, w);
}

uint64_t gt_switch_events(void)
{
    uint64_t n = 0;
    for (struct gt_writer *w = atomic_load(&writers); w; w = w->next)
        n += gt_gen_is_mute(gt_writer_gen(w)) ? w->events_before : atomic_load(&w->events);
    return n;
}

void gt_switch_after_fork(void)
{
    gt_urgent_helper(0);
    atomic_store(&writers, NULL);
}
