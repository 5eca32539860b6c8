/* Sums the waits or the CPU samples of a trace by their stacks, for flame graphs. */
#pragma once

#include "export.h"

#include "scripts/tool/report/whole.h"

#include "encoder/read/threads.h"

struct gt_stack_sum {
    const struct gt_callers *stack, *waker; /* or NULL */
    const struct gt_thread_state *of;       /* NULL: of all threads with that name */
    const char *thread;                     /* its name; NULL: of all threads */
    const char *by;                         /* the waker's name; NULL: no thread ended the wait */
    const struct gt_lock_state *lock;       /* or NULL */
    enum gt_kind kind;                      /* of the waits; GT_RUNNING: CPU samples, or holds */
    bool holds;                             /* times for which `lock` was held */
    bool ended;
    uint64_t value, count; /* ns, or samples; waits that end there, or samples */
};

/* how: set by the caller; the rest is zero-initialised. */
struct gt_stack_sums {
    const struct gt_export *how;
    struct gt_stack_sum *sum;
    size_t n;
    struct gt_memo by_key;
    struct gt_wholes wholes; /* counted: index of the sum + 1 */
};

/* Adds the part to the sum with its stacks and labels. Returns the index of that sum + 1. */
size_t gt_stack_sums_add(struct gt_stack_sums *sums, const struct gt_stack_sum *part);

/*
 * Adds the span's time to the sum with the part's stacks and labels. A span that does not count in
 * a profile is added to left_out instead. A wait that counted in another sum for an earlier sleep
 * counts in this one.
 */
void gt_stack_sums_add_span(struct gt_stack_sums *sums, const struct gt_span *span,
                            const struct gt_stack_sum *part);

/* Reads the trace, which is x's own or another one. *sums is zero-initialised. */
void gt_stack_sums_read(struct gt_stack_sums *sums, const struct gt_export *x,
                        struct gt_trace *trace);

/*
 * Calls fn with the name of each frame, the outermost first. The frames are the thread's name, its
 * functions, in brackets a state that is no call, and behind "--" the waker's functions and name.
 */
typedef void gt_frame_fn(void *arg, const char *name);
void gt_stack_sum_frames(const struct gt_stack_sum *sum, bool wakers, gt_frame_fn *fn, void *arg);
