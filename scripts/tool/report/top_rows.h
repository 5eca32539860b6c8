/*
 * What `gotrace top` shows: waits by the place where threads waited, or CPU samples by function. A
 * row is a place in the program that waits in one way: the function it called and the line that
 * called it.
 */
#ifndef GT_TOP_ROWS_H
#define GT_TOP_ROWS_H

#include "idle.h"

#include "encoder/read/threads.h"

struct gt_top_row {
    const struct gt_thread_state *thread; /* NULL: of all */
    enum gt_kind kind;
    const struct gt_callers *stack; /* of the longest */
    const char *what;               /* the function that waits */
    const struct gt_where *site;    /* who called it; NULL: not known */
    const struct gt_callers *waker;
    const char *end;                  /* the function that ended the wait; "": it ended by itself */
    const struct gt_thread_state *by; /* whose it was; NULL: several threads' */
    const struct gt_where *waker_site; /* who called that */
    uint64_t ns, count, longest;       /* ns: of samples their number */
    bool ended;
    bool owned; /* not ended, and somebody has what it waits for */
};

struct gt_top_rows {
    struct gt_top_row *row;
    size_t n, room;
    struct gt_memo by_key;
};

/* What is asked for, and the sums. */
struct gt_top {
    const struct gt_threads *threads;
    bool by_thread, cumulative, wakers, preempted;
    bool cpu;                     /* samples, not waits */
    unsigned kinds;               /* of waits, a bit each */
    size_t most;                  /* rows */
    struct gt_top_rows over, cut; /* waits that ended, and those that the end of the trace cuts */
    struct gt_idle_sum idle;
    struct gt_top_row all; /* the sum of both */
};

/* false: the wait is none of those. */
bool gt_top_add_wait(struct gt_top *top, const struct gt_span *span);
void gt_top_add_sample(struct gt_top *top, const struct gt_thread_state *thread,
                       const struct gt_callers *stack);

/* When all are added: sets idle threads apart, and sorts what is left, by place or function. */
void gt_top_sum_up(struct gt_top *top);

/* Whether a thread's end was what the row's waits were for: no call ends those. */
bool gt_top_is_end_of_thread(const struct gt_top_row *row);

#endif
