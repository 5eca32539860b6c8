/* Sums the waits or the CPU samples of a trace by their stacks, for flame graphs. */
#pragma once

#include "export.h"

#include "scripts/tool/report/whole.h"

#include "encoder/read/threads.h"

struct gt_stack_sum {
    const struct gt_callers *stack, *waker; /* or NULL */
    const char *thread;                     /* its name; NULL: of all threads */
    const char *by;                         /* the waker's name; NULL: no thread ended the wait */
    enum gt_kind kind;                      /* GT_RUNNING: CPU samples */
    bool ended;
    uint64_t value, count; /* ns, or samples; waits that end there, or samples */
};

struct gt_stack_sums {
    const struct gt_export *how;
    struct gt_stack_sum *sum;
    size_t n, room;
    struct gt_memo by_key;
    struct gt_wholes wholes; /* counted: index of the sum + 1 */
};

/* Reads the trace, which is x's own or another one. *sums is zero-initialised. */
void gt_stack_sums_read(struct gt_stack_sums *sums, const struct gt_export *x,
                        struct gt_trace *trace);

/*
 * Calls fn with the name of each frame, the outermost first. The frames are the thread's name, its
 * functions, in brackets a state that is no call, and behind "--" the waker's functions and name.
 */
typedef void gt_frame_fn(void *arg, const char *name);
void gt_stack_sum_frames(const struct gt_stack_sum *sum, bool wakers, gt_frame_fn *fn, void *arg);

/*
 * A place for the index + 1 of the sum in which the span's wait counts. Not 0: the wait counts
 * there for an earlier sleep. The caller then takes it out of that sum and counts it in the span's.
 */
size_t *gt_export_counted(struct gt_wholes *wholes, const struct gt_span *span);

/* Whether a wait counts in a profile; if not, adds it to left_out. */
bool gt_export_counts(const struct gt_export *x, bool ended, uint64_t ns);
