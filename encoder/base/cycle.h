/*
 * Cycles among waiters. Each waiter waits for at most one other, so one way leads on from each. A
 * way that comes back to a waiter is a cycle: none of its members ever goes on. Pure functions: no
 * memory, no lock, any context.
 */
#pragma once

/*
 * Returns the waiter that has to go on first. NULL: the wait may end in another way, for instance
 * by a timeout, or by one of several readers; or it is not known.
 */
typedef const void *gt_cycle_next_fn(const void *all, const void *waiter);

/*
 * Returns the first member of a cycle on the way from `waiter`; `waiter` itself, if it is a member.
 * NULL: the way ends. Takes time in proportion to the length of the way.
 */
const void *gt_cycle_entry(gt_cycle_next_fn *next, const void *all, const void *waiter);
