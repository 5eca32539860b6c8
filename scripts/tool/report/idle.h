/*
 * Idle or blocked: a thread that waits at its resting place holds nobody up. It waits there for
 * work, for the next request, or for its period to be over. Whether a place is one follows from the
 * shape of all waits of its threads. Through one place threads may wait for several purposes, as
 * through a program's own wrapper of pthread_cond_wait, or through an interpreter. So each chain of
 * callers has its own verdict, but rule 6 counts what threads of all chains give to each other. If
 * no code on the stack is the program's own, the whole stack is such a chain.
 *
 *   1. The call can wait for work: a condition variable, semaphore or futex, a queue, poll and
 *      the like, a read, a sleep. But the main thread waits for results on the first three. Never
 *      a lock, a join or a barrier, nor what a rule names (frame_rules.def). A semaphore is a lock
 *      if holds of it are known: threads give back what they took themselves.
 *   2. The thread returns to the place three times or more. Or it does nothing else from its
 *      beginning to its end, as the thread that waits for signals in a runtime. Then no signal for
 *      its condition variable was missed. The only join that is idle is a launcher's: the thread
 *      has made one thread and waits for it all its life.
 *   3. If a thread comes back to several such places, it rests at the one nearest to its loop,
 *      rather than inside a request. The loop is the function in which the thread stays between
 *      its waits. Nothing tells the loop of a thread that waits at one place only, nor that of
 *      waits below one function of a library. There the thread rests where it waits longest, rather
 *      at a wait that other threads end: other waits may be for a lock of the library's, or for a
 *      time.
 *      At any depth it rests rather in a wait for work than in a wait that only times out, or in a
 *      sleep. A thread that others give work does not rest in a sleep at all.
 *   4. A wait deep below the loop may be a request's own input or sleep. If another thread of the
 *      trace ended the wait, rule 6 decides. Otherwise depth decides: such a place is not idle if
 *      most of its waits ended without a known waker. A pool may have any number of layers above
 *      the place where its workers wait. A server may have them, too. If the program lets clients
 *      come and makes no connection, a thread's input is requests. A wait nearer to its loop after
 *      the first request is for the next connection. But input below other repeated input is
 *      answers. A trace that begins later than the program does not show earlier connections.
 *   5. No other thread waits meanwhile for a lock that the thread holds.
 *   6. The thread gets work there: no answer, no room in a queue, no slot.
 *      A wake-up is an answer if the waiter created the waker. It is one, too, if threads with
 *      the waiter's routine were first to wake threads with the waker's: a worker is woken before
 *      it wakes others. A wake-up gives back a slot, or a turn, if the waker has the waiter's
 *      routine and got the slot when it waited there. A thread waits long for a slot only while
 *      others have all slots. A queue's lock that workers hand on for a moment is no slot.
 *      A routine that only calls another function tells nothing: see gt_idle_role_of.
 *   7. Instead of 2: waits at the place, and at places as near to the loop, are nearly all of the
 *      thread's life. Example: a housekeeping thread that a timer wakes. But if another thread or
 *      process waits for the thread's end meanwhile, it waits for these timeouts, too. The user
 *      waits for the end of the first process. It is idle only if other threads run or call for a
 *      part of the trace. After a wait for events, a read that finds its input there is no place
 *      to rest.
 *
 * A wait that the end of the trace cuts is never idle if what it waits for has an owner. Nor is it
 * idle if another thread then waits for a lock that this thread holds.
 */
#pragma once

#include "encoder/read/threads.h"

/* The value of --idle: a regular expression for functions that idle threads wait in; or "none". */
void gt_idle_option(const char *value);

/*
 * Takes each span of a trace, in order; and, at the end of the trace, decides. Only then can the
 * functions below be called.
 */
void gt_idle_note(const struct gt_span *span);
void gt_idle_decide(const struct gt_trace *trace);

/* Whether the end of the trace cuts the wait, which is not idle at any place: see above. */
bool gt_is_never_idle(const struct gt_span *span);

/*
 * Whether a wait at that place, or what the thread does when the trace ends, is idle. The first
 * function does not know whether the end of the trace cuts the wait: see gt_is_never_idle.
 */
bool gt_is_idle_at(const struct gt_callers *stack, enum gt_kind kind);
bool gt_is_idle_at_end(const struct gt_thread_state *t);

/* Whether the call can wait for work: input, events, a condition variable; no lock, no sleep. */
bool gt_waits_for_input(const char *call);

/* Whether the call is the rest of a thread of OpenMP between two regions. It has no caller. */
bool gt_is_parked(const char *call);

/* The idle part of a thread's time in that state, in ns. */
uint64_t gt_idle_ns(const struct gt_thread_state *t, enum gt_kind kind);

/* "idle: 12 waits, 31.2s in 3 places: pthread_cond_wait <- worker (pool.c:31), …" */
struct gt_idle_sum {
    uint64_t count, ns;
    struct gt_idle_place {
        const struct gt_callers *stack; /* the first stack of the place */
        uint64_t ns;
    } * place;
    size_t places;
};
void gt_idle_sum_add(struct gt_idle_sum *sum, const struct gt_callers *stack, uint64_t count,
                     uint64_t ns);

/* Adds all idle waits of the trace, of threads for which of() is true. */
void gt_idle_sum_trace(struct gt_idle_sum *sum, bool (*of)(const struct gt_thread_state *t));
