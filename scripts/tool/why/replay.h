/*
 * The run again, as it would have been with one change. Each thread does what it did in the trace.
 * A wait ends when its waker reaches that point. A lock has one holder at a time, in the order in
 * which threads ask for it. CPUs are shared where there were too few.
 */
#pragma once

#include "program.h"

/* The change that is tried. Zeros: no change. */
struct gt_change {
    const double *section; /* by section: its new length, as a part of the old one; or NULL */
    const double *thread;  /* by thread: new part of its work without a lock; or NULL */
    bool free_lock;        /* `lock` is never contended */
    bool across;           /* `lock` is not held while its holder waits for another thread */
    bool slot;             /* `lock`, a semaphore, has one slot more */
    uint32_t lock;
    bool cpus;    /* no thread ever waits for a CPU */
    bool no_poll; /* the thread that polls goes on as soon as it is needed */
};

struct gt_outcome {
    uint64_t ns;     /* until the target thread is done */
    uint64_t forced; /* waits that nothing in the replay would have ended */
    uint64_t waits;
};

/* end: by thread, when it was done; UINT64_MAX: it was not. May be NULL. */
struct gt_outcome gt_replay_run(const struct gt_program *program, const struct gt_change *change,
                                uint64_t *end);
