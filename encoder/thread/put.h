/*
 * How an event is put into a writer's buffer: gt_put_at, the arguments, gt_put_end. Called by the
 * writer's owner while it has pinned the generation, or by the writer's switcher (writer.h, rules 1
 * and 2).
 */
#pragma once

#include "writer.h"

#include "encoder/base/varint.h"

/* Begins an event at `ts`; returns where its arguments go. */
static inline uint8_t *gt_put_at(struct gt_writer *w, enum gt_event_type type, uint64_t ts)
{
    GT_ASSERT("writer.h, rule 1: who writes has pinned the generation, or switches the writer",
              gt_debug_pinned() == w || gt_debug_has_rank(GT_RANK_SIDE) ||
                  (atomic_load_explicit(&w->gen, memory_order_relaxed) & GT_GEN_SWITCHING));
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

/* Ends the event. release: an event that can be found is whole, whatever ends the process. */
static inline void gt_put_end(struct gt_writer *w, uint8_t *end)
{
    GT_ASSERT("writer.h: events between pin and unpin fit in GT_EVENT_ROOM",
              !w->buf || w->shown != &w->buf->pos || end <= w->buf->data + gt_buffers_room(w->buf));
    w->pos = end;
    __atomic_store_n(w->shown, end, __ATOMIC_RELEASE);
}

/* How many ns, at most, readers are early here (rule 6). */
static inline uint32_t gt_put_early(const struct gt_writer *w)
{
    return (uint32_t)(w->events - w->piece) + 3; /* the next event, the batch, and one more */
}

/* The target is runnable from `ts` on. */
static inline void gt_put_unblock(struct gt_writer *w, struct gt_g *target, struct gt_stack *stack,
                                  uint64_t ts)
{
    target->state = GT_G_RUNNABLE;
    uint8_t *p = gt_varint_put(gt_put_at(w, GT_EV_GO_UNBLOCK, ts), target->id);
    gt_put_end(
        w, gt_varint_put(gt_varint_put(p, ++target->seq), gt_stack_use(stack, gt_writer_gen(w))));
}
