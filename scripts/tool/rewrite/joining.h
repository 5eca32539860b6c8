/*
 * Merging several traces: threads appear with their trace and end with it. The merged trace gives
 * statuses only of threads that exist at its beginning, so threads that appear later are created.
 * What a process does after its trace is not known, so its threads end with the trace.
 */
#pragma once

#include "rewriting_state.h"

/* The source gives the first state of g, in g->state. m: the thread whose events say so. */
void gt_join(struct gt_m *m, struct gt_g_row *g, uint64_t ts);

/*
 * Thread `forker` (the kernel's number) of the trace `parent` forks the process of the trace
 * `child`: the first goroutine on the child's main thread was created by that fork. Until it
 * appears, it is shown as off the CPU. Does nothing if the forking thread does not run.
 */
void gt_join_forked(struct gt_everybody *parent, uint64_t forker, struct gt_everybody *child,
                    uint64_t ns);

/* m's goroutine logs a wake-up or begins a call: ends the waits, of any trace, that this ended. */
void gt_join_wakes(struct gt_m *m, const struct gt_happening *h);

/* All threads of the trace end, and nothing more of it is written. whole: the trace is complete. */
void gt_join_leave(uint64_t ns, bool whole);
