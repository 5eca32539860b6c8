/*
 * The parallel regions of OpenMP, as the traced program's threads made them. What a worker of the
 * library does between two waits is the program's region, though the worker's own stacks do not
 * tell that.
 */
#pragma once

#include "encoder/read/threads.h"

struct gt_omp_region {
    uint64_t from, to;             /* to: UINT64_MAX until it ends */
    const struct gt_callers *call; /* where its master made it */
    uint32_t master;
};

struct gt_omp_regions {
    struct gt_omp_region *at; /* in the order of their begins */
    size_t n;
};

/* Notes the begin or end of a region; ignores all other events. */
void gt_omp_note(struct gt_omp_regions *all, const struct gt_happening *event,
                 const struct gt_thread_state *thread, uint64_t ns);

/* Whether a function of the library, in which its threads begin, has that name. */
bool gt_omp_is_start(const char *function);

/* Whether the library made the thread. */
bool gt_omp_is_worker(const struct gt_thread_state *thread);

/* The region at that time of the thread or, for a worker, of its master; NULL: there is none. */
const struct gt_omp_region *gt_omp_region_at(const struct gt_omp_regions *all,
                                             const struct gt_thread_state *thread, uint64_t at);

/* When a region that the thread made begins or ends next, after `from`; `to` if that is earlier. */
uint64_t gt_omp_edge(const struct gt_omp_regions *all, const struct gt_thread_state *thread,
                     uint64_t from, uint64_t to);

/* What reports call threads that the library made. */
#define GT_OMP_THREAD "OpenMP thread"

/* The frame of `call` with the function that has the region. */
const struct gt_where *gt_omp_place(const struct gt_callers *call);

/* Whether both calls were made at one line: that has one stack for each way to it. */
bool gt_omp_is_same(const struct gt_callers *call, const struct gt_callers *other);
