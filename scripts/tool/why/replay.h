/*
 * The run again, as it would have been with a change: each thread does what it did, waits end when
 * the one that ended them comes to that point, locks are had by one thread at a time in the order
 * in which they ask, and CPUs are shared where there were too few.
 */
#ifndef GT_WHY_REPLAY_H
#define GT_WHY_REPLAY_H

#include "program.h"

/* What is different. Zeros: nothing. */
struct gt_change {
    const double *section; /* by section: how long it takes, as a part of what it took; or NULL */
    const double *thread;  /* by thread: the same for what it does without a lock; or NULL */
    bool free_lock;        /* nobody ever waits for this one: */
    bool slot;             /* it has a slot more: */
    uint32_t lock;
    bool cpus; /* there is always a CPU */
};

struct gt_outcome {
    uint64_t ns;     /* until the last thing that counts is done */
    uint64_t forced; /* waits that nothing would have ended: the order was another one */
    uint64_t waits;
};

struct gt_outcome gt_replay_run(const struct gt_program *program, const struct gt_change *change);

#endif
