/*
 * Teams of OpenMP threads, and how they wait, whichever library makes them: openmp_gomp.c knows
 * gcc's by what the program calls, openmp_tool.c others by what they tell.
 *
 * A team is made by a thread, its master, for a parallel region; the others are workers, which run
 * their share of the region, wait until all have, and are idle then: in the dock of that master.
 * From one to the other they go where no hook sees it: the last thread of the region to arrive
 * writes both for them, the end of the wait and the idleness (gt_wake_pass).
 */
#ifndef GT_OPENMP_H
#define GT_OPENMP_H

#include "slice.h"
#include "wait.h"

struct gt_omp_team {
    struct gt_omp_member *master;
    uint32_t hook;            /* leaf of the waits for its end */
    const void *call;         /* where the program made it */
    const void *fn;           /* what its threads run */
    _Atomic uint32_t threads; /* 0: not known before one of them runs */
    _Atomic uint32_t arrived; /* at the barrier under way */
    _Atomic uint32_t tasks;   /* made, and not done */
    _Atomic bool ending;      /* that barrier is the region's end */
    _Atomic bool over;
    uint64_t region; /* in the trace; 0: none */
};

/* A wait in which a thread may run tasks: meanwhile it does not wait. */
struct gt_omp_wait {
    struct gt_wait_for what;
    struct gt_here here; /* the hook, if its frame lasts as long; else zeros */
    bool brief;          /* maybe: then it is written when it was not, and nobody's doing */
    struct gt_wait wait;
    struct gt_slice slice; /* brief */
};

/* What a thread does. */
struct gt_omp_member {
    struct gt_omp_team *team; /* NULL: none */
    struct gt_omp_wait *wait; /* in which it is; NULL: none */
    struct gt_omp_wait end;   /* of a worker: for the end of its region, and idle after that */
};
extern __thread struct gt_omp_member gt_omp_self __attribute__((tls_model("initial-exec")));

/* The caller makes a team, of which fn, hook and call are set. */
void gt_omp_team_begin(struct gt_omp_team *team);
void gt_omp_team_end(struct gt_omp_team *team);

/*
 * The caller, one of so many threads, begins and ends its share. A master then waits, in `wait`,
 * for which gt_omp_wait_end is to be called, a worker until it begins another one.
 */
void gt_omp_share_begin(struct gt_omp_team *team, uint32_t threads);
void gt_omp_share_end(struct gt_omp_team *team, struct gt_omp_wait *wait);

/*
 * The caller arrives at a barrier of its team, in the function that was called at `call`, and waits
 * unless it is the last one.
 */
void gt_omp_barrier(enum gt_hook hook, const void *call, struct gt_omp_wait *wait);

/* Any other wait; what it is for, or that it may be brief, is set. */
void gt_omp_wait_begin(struct gt_omp_wait *wait);

/* Does nothing for one that did not begin. */
void gt_omp_wait_end(struct gt_omp_wait *wait);

/* A task was made, to be run at any time. */
void gt_omp_task_made(void);

/*
 * The caller begins a task, maybe inside a wait; and has done it: `made`, if that was told. Then
 * that wait goes on.
 */
struct gt_omp_wait *gt_omp_task_begin(bool made);
void gt_omp_task_end(struct gt_omp_wait *interrupted);

#endif
