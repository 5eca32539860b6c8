/*
 * Waits for any of several futexes, futex_waitv(2). The registry knows one address of a waiter. So
 * the waiter is registered at its gate, an address of its own, and this table has the gates of each
 * futex. Any thread; no locks.
 */
#pragma once

#include "preload/registry/park.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* struct futex_waitv of <linux/futex.h>, which headers before Linux 5.16 lack. */
struct gt_futex {
    uint64_t value, address;
    uint32_t flags, reserved;
};

enum { GT_FUTEX_ANY_MOST = 128 }; /* FUTEX_WAITV_MAX */

extern _Atomic unsigned gt_futex_any_count; /* entries of the table */

/* Whether a thread waits for several futexes. */
static inline bool gt_futex_any_waits(void)
{
    return atomic_load_explicit(&gt_futex_any_count, memory_order_relaxed) != 0;
}

/*
 * The caller is about to wait, at the gate, an address on its stack. A futex that finds no room
 * here has no waker; nor has the wait of a signal handler that has interrupted such a wait.
 */
void gt_futex_any_add(const void *gate, const struct gt_futex *futexes, unsigned n);
void gt_futex_any_remove(const void *gate);

/* A jump leaves the wait that the calling thread is in, if any. */
void gt_futex_any_leave(void);

/* In a forked child, where no thread waits. */
void gt_futex_any_after_fork(void);

/* Ends waits at the gates of the futex wake->addr, of wake->max threads at most. */
void gt_futex_any_wake(const struct gt_wake *wake);
