/* `gotrace top --kind=sched`: what ran on the CPUs while runnable threads waited for them. */
#pragma once

#include "encoder/read/threads.h"

/* Adds a GT_SCHED span of the trace that is being read, with gt_threads.keep_running. */
void gt_top_sched_add(const struct gt_threads *threads, const struct gt_span *span);

/* Prints at most `most` rows; or says that the trace does not tell. */
void gt_top_sched_print(const struct gt_threads *threads, size_t most);
