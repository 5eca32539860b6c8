/* `gotrace top --kind=sched`: who had the CPUs for which threads waited that could run. */
#ifndef GT_TOP_SCHED_H
#define GT_TOP_SCHED_H

#include "encoder/read/threads.h"

/* A GT_SCHED of the trace that is being read, with gt_threads.keep_running. */
void gt_top_sched_add(const struct gt_threads *threads, const struct gt_span *span);

/* So many rows at most; or that the trace does not tell. */
void gt_top_sched_print(const struct gt_threads *threads, size_t most);

#endif
