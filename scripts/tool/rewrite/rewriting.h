/*
 * Rewrites the events of a trace, or of a part of its time or threads, in any format. The result is
 * as a recording of that part would be. The reader gives the events in causal order; writing.h
 * writes them. In between, this module keeps the state of every thread, P and goroutine. A
 * generation begins with these states, and so does a part that begins in the middle of a trace.
 *
 * A part of a trace by libgotrace begins with every thread running for no time. So each thread can
 * repeat what readers need: its start routine, its name, open tasks and regions, the lock it waits
 * for. Then the thread goes on to wait or call, with its real reason and stack. In a trace by a Go
 * program goroutines have no threads of their own, so the part begins with statuses only.
 */
#pragma once

#include "rewriting_wanted.h"

/* Needs gt_writing_begin, called with the time `from` + 1. Events that follow are of this trace. */
struct gt_everybody *gt_rewriting_begin(const struct gt_rewriting *r);

/* The callbacks for reading the trace. */
extern const struct gt_audience gt_rewriting_audience;

/* When merging: a generation ends for all traces at ns of the timeline, and the next one begins. */
void gt_rewriting_pause(void);
void gt_rewriting_go_on(uint64_t ns);

/* When merging: the trace is over at its ns, and may be unmapped. Its remaining threads end. */
void gt_rewriting_leave(uint64_t ns, bool whole);

/* Of a single trace: all events are rewritten; the trace ends at `end`, in ns. whole: complete. */
void gt_rewriting_end(uint64_t end, bool whole);
