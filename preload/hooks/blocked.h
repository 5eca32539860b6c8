/*
 * Who waits at this moment, for what, and who holds that: all at once, for the end of a trace and
 * for threads that wait for each other for ever. Drain side only.
 */
#ifndef GT_BLOCKED_H
#define GT_BLOCKED_H

#include "owner.h"

#include "encoder/buffers.h"

#include <stddef.h>

struct gt_stack;

/* A wait for what has an owner. */
struct gt_blocked {
    uint64_t g, since; /* since: trace time */
    uint32_t tid;
    enum gt_lock_kind kind;
    bool timed;       /* it ends by itself */
    bool shared;      /* with other processes */
    const void *lock; /* or whom a join waits for: a pthread_t */
    uint32_t holder;  /* as gt_owner_of, of a join whom it waits for */
    bool gone;        /* that thread has ended */
    bool again;       /* it has waited for a condition variable, and gets its mutex back */
    bool confirmed;   /* of a cycle, or gone: it was so twice */
    struct gt_stack *stack;
    int32_t next;  /* the index of the holder's own wait; negative: it has none */
    int32_t cycle; /* of the cycle that it is in, the least index; negative: in none */
};

/*
 * All that there are, in memory that is valid until the next call; *n: how many. A thread that can
 * only be waited for is in the list, too, if it waits. Waits that end by themselves are in no
 * cycle.
 */
struct gt_blocked *gt_blocked_now(size_t *n);

/* The same as strings for a trace, for readers to know how it ended: see struct gt_drain_config. */
void gt_blocked_tell(gt_tell_fn *tell);

#endif
