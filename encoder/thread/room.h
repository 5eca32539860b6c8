/*
 * Room for events in the current generation: a writer's owner pins it, writes, and unpins. What an
 * owner needs that finds no room, or is in an older generation, is in room.c: another batch,
 * another buffer, or the way to the next generation (move.h).
 */
#pragma once

#include "writer.h"

bool gt_writer_pin_slow(struct gt_writer *w, bool at_once);

static inline bool gt_writer_pin_how(struct gt_writer *w, bool at_once)
{
    gt_debug_pin(w);
    atomic_store_explicit(&w->busy, 1, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&gt_gen.fence, memory_order_relaxed), 0))
        atomic_thread_fence(memory_order_seq_cst);
    atomic_signal_fence(memory_order_seq_cst); /* rule 1 */
    uint32_t gen = atomic_load_explicit(&gt_gen.current, memory_order_acquire);
    if (__builtin_expect(atomic_load_explicit(&w->gen, memory_order_acquire) == gen &&
                             w->end - w->pos >= GT_EVENT_ROOM && !gt_call_is_announced(w),
                         1))
        return true;
    return gt_writer_pin_slow(w, at_once);
}

/*
 * Pins the current generation. false: nothing is being recorded, or nothing can be (which is
 * counted as lost); then do not unpin. May wait for a buffer if the disk cannot keep up.
 */
static inline bool gt_writer_pin(struct gt_writer *w)
{
    return gt_writer_pin_how(w, false);
}

/*
 * Like gt_writer_pin, for a caller with a lock that other threads want: takes a buffer beyond the
 * limit rather than wait. Pin and unpin before that lock, so that only events that do not fit in
 * GT_EVENT_ROOM need this.
 */
static inline bool gt_writer_pin_at_once(struct gt_writer *w)
{
    return gt_writer_pin_how(w, true);
}

/* Like gt_writer_pin, with room for two texts (texts.h). */
bool gt_writer_pin_texts(struct gt_writer *w);

static inline void gt_writer_unpin(struct gt_writer *w)
{
    gt_debug_pin(NULL);
    /* release: the drain side, seeing 0, sees the events. Pairs with its acquire of busy. */
    atomic_store_explicit(&w->busy, 0, memory_order_release);
}

/* Whether w's thread, the caller, may sleep until the drain side has done something. */
bool gt_writer_waits(const struct gt_writer *w);
