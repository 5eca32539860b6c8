/*
 * The protocol by which waits of threads are written, between a writer and the registry: rule 4 of
 * encoder/thread/writer.h. This file knows nothing of hooks. Hooks call wait.c, which adds the
 * stack.
 *
 * All functions pin writers themselves. Any thread, with its own writer; signal handlers under the
 * guard of thread.h.
 */
#pragma once

#include "registry.h"

#include "encoder/format/format.h"
#include "encoder/thread/held.h"
#include "encoder/thread/writer.h"
#include "preload/shared/lock_kind.h"

struct gt_timeout;

/* A thread's entries in the registry. */
struct gt_parking {
    struct gt_waiter waiter;
    struct gt_waiter relock; /* for the mutex, see struct gt_waiter */
    bool shared;             /* threads of other processes may end the wait, too */
    bool took;               /* see gt_registry_remove */
};

/* What a thread waits for. */
struct gt_wait_for {
    uint32_t hook; /* enum gt_hook, the leaf of the stack */
    enum gt_reason reason;
    const void *addr;             /* where other threads end it; NULL: none does, a sleep */
    bool timed;                   /* it has a timeout */
    const struct gt_timeout *end; /* the timeout, if it alone ends the wait; or NULL */
    enum gt_lock_kind kind;       /* of the lock at addr */
    struct gt_lock_in_use lock;   /* for the trace; wait.c fills it in, `at` if it is NULL */
    const void *mutex;            /* a condition variable's, reacquired at the end; else NULL */
    uint64_t since;               /* when it began; 0, in wait.h: now */
    const void *from;             /* where the program called, see gt_capture_from; or NULL */
    uint32_t bits;                /* of FUTEX_WAIT_BITSET; 0: all */
    uint32_t count;               /* at a barrier: the threads that it takes; 0: no barrier */
    bool final;                   /* see struct gt_waiter */
    bool kept;                    /* see gt_mutex_keep in wait.h */
    bool whole;                   /* all that the thread does until the end belongs to the wait */
};

/*
 * w's thread is about to block. false: it is the last thread at a barrier, and does not block; or
 * nothing is recorded.
 */
bool gt_park(struct gt_writer *w, struct gt_parking *p, const struct gt_wait_for *what,
             struct gt_stack *stack);

/*
 * The wait is over, and so is whatever else w's goroutine was doing. false: the thread cannot leave
 * the registry, or nothing can be written. Then the caller must try again before it writes anything
 * else for the goroutine.
 */
bool gt_unpark(struct gt_writer *w, struct gt_parking *p, int64_t patience_ns)
    __attribute__((warn_unused_result));

/*
 * The first half of gt_unpark: takes p out of the registry, so that no other thread refers to p.
 * false: see gt_registry_remove.
 */
bool gt_park_forget(struct gt_parking *p, int64_t patience_ns) __attribute__((warn_unused_result));

/* Which waits the caller is about to end. */
struct gt_wake {
    uint32_t hook;
    const void *addr;
    uint32_t max;     /* at most so many, the oldest first */
    uint32_t bits;    /* of FUTEX_WAKE_BITSET; 0: any */
    bool asleep;      /* only waiters that were not woken yet: the others are known to be awake */
    const void *from; /* as in struct gt_wait_for */
};

/* w's thread ends waits. Returns how many. */
uint32_t gt_park_wake(struct gt_writer *w, const struct gt_wake *wake, struct gt_stack *stack);

/* w's thread ends all waits at `from`. Their threads now wait at `to`, with the stack `then`. */
void gt_park_pass(struct gt_writer *w, const void *from, const void *to, struct gt_stack *stack,
                  struct gt_stack *then);
