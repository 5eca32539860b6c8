/*
 * What `gotrace top` shows: waits by the place where threads waited, or CPU samples by function. A
 * row is one place in the program and one way to wait there: the function that was called, and the
 * line that called it.
 */
#pragma once

#include "idle.h"
#include "in_kernel.h"
#include "lengths.h"
#include "whole.h"

#include "encoder/read/threads.h"

struct gt_top_row {
    const struct gt_thread_state *thread; /* NULL: all threads, or several */
    enum gt_kind kind;
    const struct gt_callers *stack; /* of the longest wait */
    const char *what;               /* the function that waits */
    const struct gt_where *site;    /* its caller; NULL: not known */
    const struct gt_callers *waker;
    const char *end;                  /* the function that ended the wait; "": no thread ended it */
    const struct gt_thread_state *by; /* the waker; NULL: several threads */
    const struct gt_where *waker_site; /* the caller of `end` */
    uint64_t ns, count, longest;       /* ns: for samples their number */
    uint64_t further;                  /* of `count`: further sleeps of waits, with wakers */
    struct gt_lengths lengths;         /* if gt_top.lengths */
    bool ended;
    bool never_idle; /* see gt_is_never_idle */
};

struct gt_top_rows {
    struct gt_top_row *row;
    size_t n;
    struct gt_memo by_key;
};

/*
 * The reports, each with its option. GT_TOP_PLACES is the default. --cum is not in the list: see
 * gt_top_reports.
 */
#define GT_TOP_REPORTS(R) \
    R(HOLDERS, "holders") \
    R(BY_LOCK, "by-lock") \
    R(WAKERS, "wakers") R(WAKEUPS, "wakeups") R(PREEMPTED, "preempted") R(BY_THREAD, "by-thread")
#define GT_TOP_NUMBER(report, name) GT_TOP_##report,
enum gt_top_report { GT_TOP_PLACES, GT_TOP_REPORTS(GT_TOP_NUMBER) GT_TOP_CUM };

/* The options of the report, and its sums. */
struct gt_top {
    const struct gt_threads *threads;
    enum gt_top_report report;
    bool cpu;                           /* samples, not waits */
    bool lengths;                       /* percentiles are wanted */
    unsigned kinds;                     /* kinds of waits, one bit each */
    size_t most;                        /* number of rows */
    struct gt_top_rows over, cut;       /* waits that ended, and those that the trace's end cuts */
    struct gt_idle_sum idle, in_kernel; /* waits and calls that the rows leave out */
    struct gt_sure_waits sure;
    struct gt_wholes wholes; /* the waits that may go on; with wakers: the last ones */
    struct gt_top_row all;   /* the sum of both */
};

static inline bool gt_top_has_wakers(const struct gt_top *top)
{
    return top->report == GT_TOP_WAKERS || top->report == GT_TOP_PREEMPTED;
}

/*
 * Adds a wait, or a sleep of one: with wakers each sleep counts, as each has a waker of its own.
 * False: it is of another kind.
 */
bool gt_top_add_wait(struct gt_top *top, const struct gt_span *span);
void gt_top_add_sample(struct gt_top *top, const struct gt_thread_state *thread,
                       const struct gt_callers *stack);

/* Call it after all are added: sets idle waits apart, and sorts the rest by place or function. */
void gt_top_sum_up(struct gt_top *top);

/* Whether the row's waits were for the end of a thread: no call ends such a wait. */
bool gt_top_is_end_of_thread(const struct gt_top_row *row);
