/*
 * Announces and withdraws a call into the kernel (writer.h, rule 5). Most calls are too short for
 * an event. states.h has the functions that write a longer call.
 */
#pragma once

#include "stacks.h"
#include "writer.h"

#include "encoder/base/debug.h"
#include "encoder/format/format.h"

/*
 * By the owner, pinned: announces a call, which may be short. false: w's goroutine is not running.
 * reason, stack: see struct gt_call.
 */
static inline bool gt_call_announce(struct gt_writer *w, uint64_t since, enum gt_reason reason,
                                    struct gt_stack *stack)
{
    if (w->g.state != GT_G_RUNNING)
        return false;
    w->call.reason = reason;
    atomic_store_explicit(&w->call.stack, stack, memory_order_relaxed);
    atomic_store_explicit(&w->call.since, since, memory_order_release);
    return true;
}

/*
 * By the owner, not pinned: the announced call is over. true: the trace contains nothing of it, and
 * it has cost no more than this. false: the trace contains the call, or may; then pin,
 * gt_ev_go_resume, unpin.
 */
static inline bool gt_call_withdraw(struct gt_writer *w, uint64_t since)
{
    GT_ASSERT("writer.h, rule 5: a call is not withdrawn by who has pinned", !gt_debug_pinned());
    atomic_store_explicit(&w->call.since, 0, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&gt_gen.fence, memory_order_relaxed), 0))
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst); /* rule 5 */
    uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&w->gen, memory_order_acquire) == gen, 1))
        return w->g.state == GT_G_RUNNING;
    /* release: as in gt_call_announce. */
    atomic_store_explicit(&w->call.since, since, memory_order_release);
    return false;
}

/* By the owner, which has just announced the call of `since`: it ends at `due` without a waker. */
static inline void gt_call_ends_at(struct gt_writer *w, uint64_t since, uint64_t due)
{
    atomic_store_explicit(&w->call.due, due, memory_order_relaxed);
    /* release: a thread that finds this due_of finds its `due`, too. */
    atomic_store_explicit(&w->call.due_of, since, memory_order_release);
}
