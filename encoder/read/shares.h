/*
 * Divides a thread's time. Events tell when it waited. Its account tells how long it had a CPU,
 * and how long it was in a run queue. Neither tells both. For other threads a wait ends when its
 * thread has a CPU again, so a part of the wait was for a CPU. And a thread in a call may have
 * computed.
 */
#pragma once

#include "encoder/format/usage.h"

enum gt_kind {
    GT_RUNNING,
    GT_SCHED, /* runnable: it was woken or gave way, and has no CPU yet */
    GT_SYNC,
    GT_NETWORK,
    GT_SYSCALL,
    GT_SLEEP,
    GT_OTHER,
    GT_UNSEEN, /* off the CPU, by the kernel's record, and in no known call */
    GT_KINDS
};

/* In ns. Zero-initialised, but for `until` and `runs`. */
struct gt_shares {
    uint64_t until; /* all up to this time is divided */
    uint64_t time;  /* its length, the sum of: */
    uint64_t cpu, queue, wait[GT_KINDS], unseen;
    struct gt_usage used;    /* the sums of accounts; may be more than is possible */
    uint64_t told[GT_KINDS]; /* ns by events, up to `until` */
    uint64_t ahead;          /* the part of `queue` that the kernel has not counted yet */
    /* When switches were last known: in how many waits it had slept, and whether it ran or was
     * runnable. And what was added to `unseen` since. */
    uint64_t slept;
    bool runs;
    uint64_t unsure;
};

/* Time off the CPU and in no known call: what the kernel recorded, and the rest of the time. */
static inline uint64_t gt_shares_unseen(const struct gt_shares *s)
{
    return s->unseen + s->wait[GT_UNSEEN];
}

/*
 * The shares of a thread that lived so long. The last account is from after the last event: the
 * time beyond is left out, in proportion.
 */
struct gt_shares gt_shares_within(const struct gt_shares *s, uint64_t lived);

/*
 * Adds the time until `at`. ns: what the thread has done by its events since it began; slept: in
 * how many waits it has slept. used: what it has used since s->until; NULL: nothing.
 */
void gt_shares_add(struct gt_shares *s, uint64_t at, const uint64_t ns[GT_KINDS], uint64_t slept,
                   const struct gt_usage *used);
