/*
 * Real CPU state (GOTRACE_SCHED): the kernel records when each thread gets a CPU and loses it
 * (watch.h); a generation's events are put in order with that, and where a thread ran by its events
 * and had no CPU they are completed: it was preempted, or waits for what no hook sees. A wait that
 * is over ends where its thread had a CPU again. Drain side only, but for what says otherwise.
 */
#ifndef GT_SCHED_H
#define GT_SCHED_H

#include "buffers.h"
#include "watch.h"

/* Where a thread is, as the kernel has it now; false: that is not known. */
struct gt_where_now {
    bool sleeps, runs; /* neither: it is in a run queue */
    uint32_t cpu;
};
typedef bool gt_where_fn(uint32_t tid, struct gt_where_now *where);

/* It is wanted; what it wants to be told of threads under watch. Before there are writers. */
struct gt_watch_switches gt_sched_init(gt_where_fn *where);

/* A recording begins; or has ended, and nothing is completed any more. */
void gt_sched_open(void);
void gt_sched_close(void);

/* Generation gen is under way; all threads are in it, and watched if that is possible. */
void gt_sched_next(uint32_t gen);

/* Whether that one is to be completed. */
bool gt_sched_is_on(void);

/* How many Ps are CPUs: it is on, and the kernel allows it; or 0. */
uint32_t gt_sched_cpus(void);

/* Whether the events of generation gen are to be completed: they wait until it is over. */
bool gt_sched_covers(uint32_t gen);

/*
 * Generation gen is over, gt_sched_next was called for the next one, and who has ended is noted
 * (gt_watch_note_ends): its events, encoded in *packed and as they are in *plain, are completed,
 * and both are other buffers then. 0 or -errno; what follows in the file would contradict.
 */
int gt_sched_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain);

/* What was completed is in the file, or kept. */
void gt_sched_written(void);

/* The statuses with which a file ends, as the completed events before have it; NULL: no memory. */
struct gt_buf *gt_sched_end(uint32_t gen, struct gt_buf *packed);

/*
 * For who goes on with another process's trace, all of whose generations are covered: a completed
 * generation, which is written; and one that is not, of which nothing is known but its events. 0 or
 * -errno.
 */
void gt_sched_resume(void);
struct gt_packed;
int gt_sched_follow(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain);
int gt_sched_go_on(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                   struct gt_packed *completed);

/* Gaps in the kernel's records, in this recording. */
uint64_t gt_sched_gaps(void);

void gt_sched_after_fork(void);

#endif
