/* The waits of a trace by their stacks, or its CPU samples: what flame graphs are made of. */
#ifndef GT_EXPORT_STACKS_H
#define GT_EXPORT_STACKS_H

#include "export.h"

#include "encoder/read/threads.h"

struct gt_stack_sum {
    const struct gt_callers *stack, *waker; /* or NULL */
    const char *thread;                     /* its name, NULL: of all threads */
    const char *by;    /* the name of who ended the wait; NULL: it ended by itself */
    enum gt_kind kind; /* GT_RUNNING: CPU samples */
    bool ended;
    uint64_t value, count; /* ns, or samples; waits or samples */
};

struct gt_stack_sums {
    const struct gt_export *how;
    struct gt_stack_sum *sum;
    size_t n, room;
    struct gt_memo by_key;
};

/* Reads the trace, which is x's own or another one. Zeros to begin with. */
void gt_stack_sums_read(struct gt_stack_sums *sums, const struct gt_export *x,
                        struct gt_trace *trace);

/*
 * Calls fn with the name of each frame, the outermost first: the thread's, functions, in brackets
 * what is no call, and behind "--" those of who ended the wait.
 */
typedef void gt_frame_fn(void *arg, const char *name);
void gt_stack_sum_frames(const struct gt_stack_sum *sum, bool wakers, gt_frame_fn *fn, void *arg);

#endif
