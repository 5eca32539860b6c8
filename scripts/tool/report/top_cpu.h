/* `gotrace top --kind=cpu`: which threads used the CPUs, by the CPU accounts of a trace. */
#pragma once

#include "encoder/read/threads.h"

/* Prints at most `most` rows. Ends the program with a message if the trace has no accounts. */
void gt_top_cpu(const struct gt_threads *threads, size_t most);
