/*
 * How long threads have waited for locks, summed up by stack. The exit line names the place with
 * the longest waits.
 */
#pragma once

#include "preload/shared/lock_kind.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_stack;

/*
 * Whether waits for such a lock are summed up. What a semaphore, or one of Python's locks, is for
 * is not known: an idle thread waits there, too.
 */
static inline bool gt_contention_counts(enum gt_lock_kind kind)
{
    return kind == GT_LOCK_MUTEX || kind == GT_LOCK_RWLOCK || kind == GT_LOCK_GIL;
}

/*
 * The calling thread, with this stack, has waited for the lock from `since` to `until`, in trace
 * time. Inside the guard. stack: NULL where memory is exhausted.
 */
void gt_contention_add(const void *lock, const struct gt_stack *stack, uint64_t since,
                       uint64_t until);

/* A recording begins: called by the drain side, or in a forked child. */
void gt_contention_begin(void);

/*
 * Drain side, when a recording ends: makes the phrase for gt_contention_phrase. Waits that have not
 * ended count until now.
 */
void gt_contention_sum_up(void);

/*
 * "threads waited 3.214 s in all for journal in commit (pool.cc:15)"; "": no place with a name was
 * waited at for 5 % of the recording's length. Any thread, after the recording's end.
 */
enum { GT_CONTENTION_PHRASE = 256 };
const char *gt_contention_phrase(uint64_t recording_ns);
