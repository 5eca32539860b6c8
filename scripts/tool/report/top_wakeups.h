/* `gotrace top --wakeups`: waits and signals of each condition variable. */
#pragma once

#include "encoder/read/threads.h"

/* Adds a wait of the trace that is being read. */
void gt_top_wakeups_add(const struct gt_span *span);

/* Prints at most `most` variables. */
void gt_top_wakeups_print(const struct gt_threads *threads, size_t most);
