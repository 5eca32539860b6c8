/*
 * A trace as timelines have it: what its threads did, what they held, and what the program says of
 * itself, told in the order in which it was over. All that is left to a format is how to write it.
 */
#ifndef GT_EXPORT_TIMELINE_H
#define GT_EXPORT_TIMELINE_H

#include "encoder/read/threads.h"

/* Of a program's own: a task, a region of a thread, or a log. */
struct gt_mark {
    enum gt_mark_kind { GT_MARK_TASK, GT_MARK_REGION, GT_MARK_LOG } kind;
    bool ends;                            /* else it begins; a log does neither */
    const struct gt_thread_state *thread; /* that says it */
    uint64_t ns, task, parent;            /* task, parent: 0: none */
    const char *name, *more;              /* more: what a log says */
};

enum gt_counter { GT_COUNT_RUNNING, GT_COUNT_RUNNABLE, GT_COUNT_HEAP, GT_COUNT_GOAL, GT_COUNTERS };
extern const char *const gt_counter_names[GT_COUNTERS]; /* HEAP, GOAL: bytes; else threads */

/* Who is told; each is given. Times are ns since the trace began. */
struct gt_timeline {
    void (*span)(void *arg, const struct gt_span *span); /* also those of GT_RUNNING */
    void (*hold)(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold);
    void (*sample)(void *arg, const struct gt_thread_state *thread, const struct gt_callers *stack,
                   uint64_t ns);
    void (*mark)(void *arg, const struct gt_mark *mark);
    void (*count)(void *arg, enum gt_counter counter, uint64_t ns, uint64_t value);
    void *arg;
    /* Inside: */
    struct gt_memo states; /* of threads, as they were last */
    uint64_t counted[GT_COUNTERS];
};

/* Reads the trace; what is known of its threads then is in *threads, which is zeros before. */
void gt_timeline_read(struct gt_timeline *timeline, struct gt_threads *threads,
                      struct gt_trace *trace);

#endif
