/*
 * Counts of signals to condition variables on which a thread has waited before: how many came from
 * each place, and how many reached no waiter. Signals leave no events; the counts stand at the end
 * of a trace. They tell a lost wake-up from one that was never sent.
 */
#pragma once

#include "encoder/thread/held.h"
#include "preload/registry/registry.h"

/* A thread begins to wait for the condition variable. Any thread. */
void gt_signalled_expect(const void *cond);

/* Counts a signal in `hook`, which was called at pc and reached so many waiters. Any thread. */
void gt_signalled_count_slow(uint32_t hook, const void *cond, const void *pc, uint32_t reached);

static inline bool gt_signalled_is_expected(const void *cond)
{
    return gt_registry_word(cond) & GT_REGISTRY_COND;
}

/* A recording begins: called by the drain side, or in a forked child. */
void gt_signalled_reset(void);

/* Drain side: subtracts the counts that gt_signalled_tell has told last. */
void gt_signalled_forget_told(void);

/* Drain side: tells a text for each variable and place, see GT_SIGNALS. */
void gt_signalled_tell(gt_tell_fn *tell);
