/* Sums the waits or the CPU samples of a trace by their stacks, for flame graphs. */
#pragma once

#include "export.h"

#include "encoder/read/threads.h"

struct gt_stack_sum {
    const struct gt_callers *stack, *waker; /* or NULL */
    const char *thread;                     /* its name; NULL: of all threads */
    const char *by;                         /* the waker's name; NULL: no thread ended the wait */
    enum gt_kind kind;                      /* GT_RUNNING: CPU samples */
    bool ended;
    uint64_t value, count; /* ns, or samples; waits or samples */
};

struct gt_stack_sums {
    const struct gt_export *how;
    struct gt_stack_sum *sum;
    size_t n, room;
    struct gt_memo by_key;
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

/* Whether a wait counts in a profile; if not, adds it to left_out. */
bool gt_export_counts(const struct gt_export *x, bool ended, uint64_t ns);
