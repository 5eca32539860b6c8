/*
 * Teams of OpenMP threads, and how they wait, for every OpenMP library. openmp_gomp.c follows gcc's
 * library by the program's calls, openmp_tool.c the others by what they report.
 *
 * A thread, the master, makes a team for a parallel region; the other threads of the team are
 * workers. A worker runs its share of the region, waits until all have run theirs, and is then idle
 * in the dock of that master. No hook sees a worker go from waiting to idle. The last thread to
 * arrive at the region's end writes both for the workers: the end of the wait and the idleness
 * (gt_wake_pass).
 */
#pragma once

#include "preload/shared/leaves.h"
#include "preload/waits/slice.h"
#include "preload/waits/wait.h"

struct gt_omp_team {
    struct gt_omp_member *master;
    uint32_t hook;            /* leaf of the stacks of waits for the region's end */
    const void *call;         /* where the program made it */
    const void *fn;           /* what its threads run */
    _Atomic uint32_t threads; /* 0: not known until one of them runs */
    _Atomic uint32_t arrived; /* at the barrier under way */
    _Atomic uint32_t tasks;   /* created and not finished */
    _Atomic bool ending;      /* the barrier under way is the region's end */
    _Atomic bool over;
    uint64_t region; /* in the trace; 0: none */
};

/* A wait in which the thread may run tasks. While it runs one, it does not wait. */
struct gt_omp_wait {
    struct gt_wait_for what;
    struct gt_here here; /* the hook, if its frame lasts as long as the wait; else zeros */
    bool brief;          /* may be over at once: a slice, which is written only if long */
    struct gt_wait wait;
    struct gt_slice slice; /* brief */
};

/* What a thread does in OpenMP. Small: plugins need the room for variables of this kind, too. */
struct gt_omp_member {
    struct gt_omp_team *team; /* NULL: none */
    struct gt_omp_wait *wait; /* under way; NULL: none */
};
extern __thread struct gt_omp_member gt_omp_self __attribute__((tls_model("initial-exec")));

/* The caller makes a team; it has set fn, hook and call. */
void gt_omp_team_begin(struct gt_omp_team *team);
void gt_omp_team_end(struct gt_omp_team *team);

/*
 * The caller, one of `threads` threads, begins and ends its share. At the end a master waits, in
 * `wait`, until gt_omp_wait_end is called. A worker waits until it begins its next share.
 */
void gt_omp_share_begin(struct gt_omp_team *team, uint32_t threads);
void gt_omp_share_end(struct gt_omp_team *team, struct gt_omp_wait *wait);

/*
 * The caller arrives at a barrier of its team, in a function that was called at `call`. It waits
 * unless it is the last one.
 */
void gt_omp_barrier(enum gt_hook hook, const void *call, struct gt_omp_wait *wait);

/* Begins any other wait. The caller has set `what`, or that the wait may be brief. */
void gt_omp_wait_begin(struct gt_omp_wait *wait);

/* Ends a wait. Does nothing if the wait did not begin. */
void gt_omp_wait_end(struct gt_omp_wait *wait);

/* Ends the wait of a worker for the end of a region, or its idleness behind. */
void gt_omp_worker_goes_on(void);

/* A task was created, to be run at any time. */
void gt_omp_task_made(void);

/*
 * The caller begins a task, perhaps inside a wait, and ends it; then the interrupted wait goes on.
 * made: gt_omp_task_made was called for the task.
 */
struct gt_omp_wait *gt_omp_task_begin(bool made);
void gt_omp_task_end(struct gt_omp_wait *interrupted);
