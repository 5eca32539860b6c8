/*
 * Writing what was read anew: the events of a trace, or of a part of its time or threads, as a
 * recording of that would have them, in any format. Between the reader, which tells what happened
 * to whom in causal order, and writing.h stands what everybody's state is: a generation begins with
 * that, and so does a part that begins in the middle.
 *
 * A part of a trace of ours begins with its threads running for no time, so that each can say again
 * what readers would know: where it began, its name, open tasks and regions, what lock it waits
 * for; and goes on to wait or call then, for the reason and at the stack that it really has. Of a
 * trace of Go's own, whose goroutines have no threads of their own, statuses must do.
 */
#ifndef GT_REWRITING_H
#define GT_REWRITING_H

#include "encoder/read/trace.h"

struct gt_rewriting {
    const struct gt_trace *trace; /* open */
    uint64_t from, to;            /* ns since its beginning; to: UINT64_MAX: its end */
    /* Those that are wanted, as keys; or NULL: all. */
    const struct gt_memo *threads; /* as the kernel numbers them, plus 1 */
    const struct gt_memo *gs;
};

/* gt_writing_begin has been called, with the time `from` + 1. */
void gt_rewriting_begin(const struct gt_rewriting *r);

/* What is told when the trace is read. */
extern const struct gt_audience gt_rewriting_audience;

/* A sample, which must come before the first event that is not before it. */
void gt_rewriting_sample(const struct gt_cpu_sample *sample, uint64_t ns);

/* All is told, or enough; it ends at that time, ns. whole: nothing is missing. */
void gt_rewriting_end(uint64_t end, bool whole);

#endif
