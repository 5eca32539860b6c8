/* `gotrace top --kind=cpu`: which threads had the CPUs, by the accounts of a trace. */
#ifndef GT_TOP_CPU_H
#define GT_TOP_CPU_H

#include "encoder/read/threads.h"

/* So many rows at most. Ends the program with a message where the trace has no accounts. */
void gt_top_cpu(const struct gt_threads *threads, size_t most);

#endif
