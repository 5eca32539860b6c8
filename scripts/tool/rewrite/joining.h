/*
 * Of several traces that are put together: who comes with one, and goes when it ends. Readers are
 * told of those who are there only at the beginning of what is written, so all who come later are
 * made; and what a process does after its trace is not known, so that its threads end with that.
 */
#ifndef GT_JOINING_H
#define GT_JOINING_H

#include "rewriting_state.h"

/* The source says that g is in its state, of which nothing was known. m: where it says so. */
void gt_join(struct gt_m *m, struct gt_g_row *g, uint64_t ts);

/*
 * The thread of the trace `parent`, as the kernel numbers them, forks the process of the trace
 * `child`: who comes with that first, on the main thread, was made so. Until then it is off the
 * CPU, for all that is known. Nothing happens if that thread does not run.
 */
void gt_join_forked(struct gt_everybody *parent, uint64_t forker, struct gt_everybody *child,
                    uint64_t ns);

/* Whether m's first goroutine was made by a fork: g is that from here on, and can run. */
bool gt_join_made(struct gt_m *m, struct gt_g_row *g, uint64_t ts);

/* m's goroutine leaves the log of a waker, or begins a call: waits end, of other traces, too. */
void gt_join_wakes(struct gt_m *m, const struct gt_happening *h);

/* All threads of the trace end, and nothing more is told of it. whole: it says so itself. */
void gt_join_leave(uint64_t ns, bool whole);

#endif
