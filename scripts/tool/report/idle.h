/*
 * Idle or blocked: a thread that waits at its resting place, for work, for the next request, for
 * its period to be over, holds nobody up. That is told from the shape of what all its waits are:
 *
 * 1. It is a call that can wait for work: a condition variable, semaphore or futex (not of the main
 *    thread, which waits for results), a queue, poll and the like, a read, a sleep. Never a lock, a
 *    join, a barrier; nor what a rule says (frame_rules.def).
 * 2. The thread comes back there again and again: three times or more. Or it never does anything
 *    else, to the end, and nobody has signalled what it waits for in vain.
 * 3. It is called from the loop that the thread stays in between these waits, or not much below:
 *    not from deep inside of a request. Of several such places it is the one nearest to the loop.
 * 4. Nobody waits meanwhile for a lock that the thread has.
 * 5. What it gets is no answer, nor room in a queue: it is not woken by a thread that it has made,
 *    nor by one whose like a thread like it has woken first. Who works is woken before it wakes.
 *    Nor a slot or a turn that one like it has had since it waited there itself, and gives back.
 *
 * What waits when the trace ends for what has an owner is never idle.
 */
#ifndef GT_IDLE_H
#define GT_IDLE_H

#include "encoder/read/threads.h"

/* The value of --idle: a regular expression for functions that idle threads wait in, or "none". */
void gt_idle_option(const char *value);

/* Each span of a trace, in its order; and the end of it, which is when the rest can be asked. */
void gt_idle_note(const struct gt_span *span);
void gt_idle_decide(const struct gt_trace *trace);

/* Whether a thread is idle in such a span; or at such a place: not of one that ends the trace. */
bool gt_is_idle(const struct gt_span *span);
bool gt_is_idle_at(const struct gt_callers *stack, enum gt_kind kind);

/* How much of a thread's time in this state was idle, ns. */
uint64_t gt_idle_ns(const struct gt_thread_state *t, enum gt_kind kind);

/* "idle: 12 waits, 31.2s in 3 places: pthread_cond_wait <- worker (pool.c:31), …" */
struct gt_idle_sum {
    uint64_t count, ns;
    struct gt_idle_place {
        const struct gt_callers *stack; /* the first one there */
        uint64_t ns;
    } * place;
    size_t places, room;
};
void gt_idle_sum_add(struct gt_idle_sum *sum, const struct gt_callers *stack, uint64_t count,
                     uint64_t ns);

/* All of the trace, of the threads that are of it. */
void gt_idle_sum_trace(struct gt_idle_sum *sum, bool (*of)(const struct gt_thread_state *t));
void gt_idle_sum_print(struct gt_idle_sum *sum);

#endif
