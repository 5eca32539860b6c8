/*
 * All waits for locks and for ends of threads at this moment: which thread waits, for what, and
 * which thread holds it. Used for the end of a trace, and to find deadlocks. Drain side only.
 */
#pragma once

#include "encoder/thread/held.h"
#include "preload/shared/lock_kind.h"

#include <stddef.h>

struct gt_stack;

/* A wait for a lock with an owner, or for the end of a thread (a join). */
struct gt_blocked {
    uint64_t g, since; /* since: in trace time */
    uint32_t tid;
    enum gt_lock_kind kind;
    bool timed;       /* the wait has a timeout */
    bool shared;      /* other processes may use the lock, too */
    const void *lock; /* or of a join: the thread's pthread_t */
    uint32_t holder;  /* as gt_owner_of returns it; of a join: the thread waited for */
    bool gone;        /* the holder has ended */
    bool again;       /* the waiter of a condition variable reacquires its mutex */
    bool confirmed;   /* of waits in a cycle or with `gone`: so in two readings */
    struct gt_stack *stack;
    int32_t next;  /* index of the holder's own wait; negative: it does not wait */
    int32_t cycle; /* the least index in the wait's cycle; negative: in no cycle */
};

/*
 * Returns all waits, in memory that is valid until the next call; *n: how many there are. Waits
 * with a timeout are in the list, but in no cycle.
 */
struct gt_blocked *gt_blocked_now(size_t *n);

/*
 * Writes all waits as strings for the end of a trace, so that readers know how the program ended.
 * See struct gt_held_texts.
 */
void gt_blocked_tell(gt_tell_fn *tell);
