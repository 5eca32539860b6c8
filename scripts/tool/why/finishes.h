/*
 * Whether a program ends when its work is done, though its threads wait for input. A server goes on
 * until it gets an order to stop.
 */
#pragma once

#include "loops.h"

/*
 * Whether the thread, at whose end the run ends, mostly waits for the ends of threads that have
 * come to the end of their work. Or it asks others, and does not wait for input when it ends: most
 * of the path is what these did for their answers, or the program itself answers, also without
 * connections.
 */
bool gt_finishes(const struct gt_loops *loops, const struct gt_critical_path *path,
                 const struct gt_graph *graph, uint32_t thread);
