/*
 * What part of a thread's time was what: events tell when it waited, its account how long it had a
 * CPU and how long it stood in a run queue, and neither tells both. A wait that others see end when
 * its thread has a CPU again was partly one for that; a call may have computed.
 */
#ifndef GT_SHARES_H
#define GT_SHARES_H

#include "encoder/usage.h"

enum gt_kind {
    GT_RUNNING,
    GT_SCHED, /* could run: it was woken or gave way, and has no CPU yet */
    GT_SYNC,
    GT_NETWORK,
    GT_SYSCALL,
    GT_SLEEP,
    GT_OTHER,
    GT_UNSEEN, /* off the CPU, by the kernel's record, and in no call that is known */
    GT_KINDS
};

/* In ns. Zeros, but for `until` and `runs`, to begin with. */
struct gt_shares {
    uint64_t until; /* of this time all is known */
    uint64_t time;  /* which is so long, the sum of what follows: */
    uint64_t cpu, queue, wait[GT_KINDS], unseen;
    struct gt_usage used; /* its own numbers may be more than were possible */
    uint64_t told[GT_KINDS];
    bool runs; /* at `until`, or it could: it did not sleep */
};

/* Off the CPU and in no known call: as the kernel recorded it, and what is left of the time. */
static inline uint64_t gt_shares_unseen(const struct gt_shares *s)
{
    return s->unseen + s->wait[GT_UNSEEN];
}

/*
 * The same of a thread that lived so long. The last account is from after the last event: what is
 * beyond that is left out, in equal measure.
 */
struct gt_shares gt_shares_within(const struct gt_shares *s, uint64_t lived);

/*
 * By `at` the thread has done what `ns` says, by its events since it began; and used so much since
 * `until`, NULL: nothing.
 */
void gt_shares_add(struct gt_shares *s, uint64_t at, const uint64_t ns[GT_KINDS],
                   const struct gt_usage *used);

#endif
