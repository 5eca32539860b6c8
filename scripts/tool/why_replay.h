/*
 * The run again, as it would have been with a change: each thread does what it did, waits end when
 * the one that ended them comes to that point, locks are had by one thread at a time in the order
 * in which they ask, and CPUs are shared where there were too few.
 */
#ifndef GT_WHY_REPLAY_H
#define GT_WHY_REPLAY_H

#include "why_sections.h"

struct gt_replay;

/* What is different. Zeros: nothing. */
struct gt_change {
    const double *section; /* by section: how long it takes, as a part of what it took; or NULL */
    const double *thread;  /* by thread: the same for what it does without a lock; or NULL */
    bool free_lock;        /* nobody ever waits for this one: */
    uint32_t lock;
    bool cpus; /* there is always a CPU */
};

struct gt_outcome {
    uint64_t ns;     /* until the last thing that counts is done */
    uint64_t forced; /* waits that nothing would have ended: the order was another one */
    uint64_t waits;
};

/* Of that interval, up to the end of what `thread` does in it. */
struct gt_replay *gt_replay_build(struct gt_sections *sections, uint32_t thread, uint64_t from,
                                  uint64_t to);
struct gt_outcome gt_replay_run(struct gt_replay *replay, const struct gt_change *change);

/* How many CPUs its threads had while one of them stood in a run queue; 0: they do not limit it. */
double gt_replay_cpus(const struct gt_replay *replay);

void gt_replay_free(struct gt_replay *replay);

#endif
