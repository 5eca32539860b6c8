/* See move.h. */
#include "move.h"

#include "account.h"
#include "states.h"

#include "encoder/base/arch/arch.h"
#include "encoder/base/clock.h"
#include "encoder/base/urgent.h"

void gt_move_settle(struct gt_writer *w, uint32_t gen)
{
    uint32_t was = atomic_exchange_explicit(&w->gen, gen, memory_order_acq_rel);
    if (was & GT_GEN_WAITED)
        gt_futex_wake(&w->gen, INT_MAX);
}

void gt_move_wait(struct gt_writer *w, uint32_t gen, int64_t timeout_ns)
{
    if ((gen & GT_GEN_WAITED) || atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_WAITED))
        gt_futex_wait(&w->gen, gen | GT_GEN_WAITED, timeout_ns);
}

/*
 * Waits until the switch seen as `gen` is over, ns at most; awake, or asleep in slices: the drain
 * side may be waiting for a lock that a standing thread holds.
 */
static bool settled(struct gt_writer *w, uint32_t gen, uint64_t ns, bool awake)
{
    enum { TRIES = 100, SLICES = 10 };
    uint64_t start = gt_clock_monotonic_raw(), limit = ns;
    while ((gen & GT_GEN_SWITCHING) && gt_clock_monotonic_raw() - start < limit) {
        bool stands = !awake && w->may_lose && gt_any_stands();
        limit = stands ? GT_STANDING_PATIENCE_NS : ns;
        for (int i = 0; awake && i < TRIES; i++)
            gt_arch_pause();
        if (!awake)
            gt_move_wait(w, gen, stands ? GT_STANDING_PATIENCE_NS : (int64_t)ns / SLICES);
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
    bool over = w->gave_up != number && settled(w, gen, NS, true);
    w->gave_up = over ? 0 : number;
    return over;
}

/* Spins first: a thread that sleeps may queue for a CPU afterwards, for milliseconds. */
static bool await_settled(struct gt_writer *w, uint32_t gen)
{
    enum { NS = 20000 };
    bool urgent = gt_urgent();
    if (urgent ? settled_urgent(w, gen) : settled(w, gen, NS, true))
        return true;
    return !(urgent && w->may_lose) && settled(w, gen, GT_LOCK_PATIENCE_NS, false);
}

bool gt_move_claim(struct gt_writer *w, uint32_t gen)
{
    GT_ASSERT("writer.h, rule 2: no thread moves a writer that has pinned a generation",
              !gt_debug_pinned());
    return atomic_compare_exchange_strong(&w->gen, &gen, gen | GT_GEN_SWITCHING);
}

void gt_move_end_locked(struct gt_writer *w, uint32_t old)
{
    GT_ASSERT("writer.h, rule 2: who moves a writer has claimed it",
              atomic_load(&w->gen) & GT_GEN_SWITCHING);
    gt_ev_last_locked(w, old);
    gt_account_move(w);
    gt_writer_retire_texts(w, old);
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
    gt_move_end_locked(w, old);
    if (fresh) {
        gt_writer_install(w, fresh, next);
        gt_ev_statuses_locked(w, next);
    }
    return true;
}

static bool claim_and_move_locked(struct gt_writer *w, uint32_t old)
{
    if (!gt_move_claim(w, old))
        return true;
    /* After the claim: either the drain side sees the claim, or we see what it announced. */
    uint32_t next = atomic_load(&gt_gen.current);
    bool moves = next && next != old, ok = !moves || move_locked(w, old, next);
    gt_move_settle(w, moves && ok ? next : old);
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

bool gt_move_self(struct gt_writer *w)
{
    int saved = errno;
    uint32_t old = atomic_load_explicit(&w->gen, memory_order_acquire);
    bool awaits = old & GT_GEN_SWITCHING;
    bool ok = old != GT_GEN_GONE && (awaits ? await_settled(w, old) : move_self(w, old));
    errno = saved;
    return ok;
}
