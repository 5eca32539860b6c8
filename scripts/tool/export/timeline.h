/*
 * Reads a trace as a timeline: the states of its threads, the locks they held, and the program's
 * own tasks, regions and logs, in the order of their ends. A format only has to write them.
 */
#pragma once

#include "encoder/read/threads.h"

/* The begin or end of a program's task or of a thread's region, or a log. */
struct gt_mark {
    enum gt_mark_kind { GT_MARK_TASK, GT_MARK_REGION, GT_MARK_LOG } kind;
    bool ends;                            /* else it begins; a log does neither */
    const struct gt_thread_state *thread; /* the thread whose event it is */
    uint64_t ns, task, parent;            /* task, parent: 0: none */
    const char *name, *more;              /* more: message of a log */
};

enum gt_counter { GT_COUNT_RUNNING, GT_COUNT_RUNNABLE, GT_COUNT_HEAP, GT_COUNT_GOAL, GT_COUNTERS };
extern const char *const gt_counter_names[GT_COUNTERS]; /* HEAP, GOAL: bytes; else threads */

/* The callbacks, all of which must be set. Times are ns since the trace began. */
struct gt_timeline {
    void (*span)(void *arg, const struct gt_span *span); /* also those of GT_RUNNING */
    void (*hold)(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold);
    void (*sample)(void *arg, const struct gt_thread_state *thread, const struct gt_callers *stack,
                   uint64_t ns);
    void (*mark)(void *arg, const struct gt_mark *mark);
    void (*count)(void *arg, enum gt_counter counter, uint64_t ns, uint64_t value);
    void *arg;
    /* Private: */
    struct gt_memo states; /* last states of threads */
    uint64_t counted[GT_COUNTERS];
};

/* Reads the trace. *threads, zero-initialised, has the states of its threads afterwards. */
void gt_timeline_read(struct gt_timeline *timeline, struct gt_threads *threads,
                      struct gt_trace *trace);
