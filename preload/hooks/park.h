/*
 * The protocol by which waits of threads are written, between a writer and the registry: rule 4 of
 * encoder/writer.h. Knows nothing of hooks: wait.c is what they call, and adds whose stack it is.
 *
 * All of it pins writers itself. Any thread, its own writer; signal handlers under the guard of
 * thread.h.
 */
#ifndef GT_PARK_H
#define GT_PARK_H

#include "owner.h"
#include "registry.h"

#include "encoder/format.h"
#include "encoder/writer.h"

struct gt_timeout;

/* Where a thread waits. */
struct gt_parking {
    struct gt_waiter waiter;
    struct gt_waiter relock; /* see struct gt_waiter */
};

/* What for. */
struct gt_wait_for {
    uint32_t hook; /* enum gt_hook, the leaf of its stack */
    enum gt_reason reason;
    const void *addr;             /* where others end it; NULL: nobody's doing, a sleep */
    bool timed;                   /* it ends by itself */
    const struct gt_timeout *end; /* when, where nothing else is waited for then; or NULL */
    enum gt_lock_kind kind;       /* what is there */
    struct gt_lock_in_use lock;   /* the same for the trace; by wait.c */
    const void *mutex;            /* a condition variable's, to be got back at the end; else NULL */
    uint64_t since;               /* when it began; 0, in wait.h: now */
    const void *from;             /* where the program called, see gt_capture_from; or NULL */
    uint32_t bits;                /* of FUTEX_WAIT_BITSET; 0: all */
    uint32_t count;               /* at a barrier: of the threads that it takes; 0: it is none */
    bool final;                   /* see struct gt_waiter */
    bool whole;                   /* all that its thread does until the end is part of it */
};

/*
 * w's thread is about to block. false: it does not, as the last thread at a barrier; or nothing is
 * recorded.
 */
bool gt_park(struct gt_writer *w, struct gt_parking *p, const struct gt_wait_for *what,
             struct gt_stack *stack);

/*
 * The wait is over, and so is what else w's goroutine was doing. false: the registry cannot be
 * left, or nothing be written; to be tried again before anything else of the goroutine is written.
 */
bool gt_unpark(struct gt_writer *w, struct gt_parking *p, int64_t patience_ns)
    __attribute__((warn_unused_result));

/* The first half of that: nobody refers to p afterwards. false: see gt_registry_remove. */
bool gt_park_forget(struct gt_parking *p, int64_t patience_ns) __attribute__((warn_unused_result));

/* The caller is about to end waits. */
struct gt_wake {
    uint32_t hook;
    const void *addr;
    uint32_t max;     /* so many, the oldest first */
    uint32_t bits;    /* of FUTEX_WAKE_BITSET; 0: any */
    bool asleep;      /* only waiters that were not woken yet: others are known to be awake */
    const void *from; /* as in struct gt_wait_for */
};

/* w's thread ends waits. Returns how many. */
uint32_t gt_park_wake(struct gt_writer *w, const struct gt_wake *wake, struct gt_stack *stack);

/* The same for all, whose threads then wait at another address, at the place `then`. */
void gt_park_pass(struct gt_writer *w, const void *from, const void *to, struct gt_stack *stack,
                  struct gt_stack *then);

#endif
