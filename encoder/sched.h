/*
 * Real CPU state (GOTRACE_SCHED): the kernel records when each thread gets a CPU and loses it
 * (perf.h); a generation's events are put in order with that, and where a thread ran by its events
 * and had no CPU they are completed: it was preempted, or waits for what no hook sees. A wait that
 * is over ends where its thread had a CPU again. Drain side only, but for what says otherwise.
 *
 * That takes a drain thread with descriptors of its own: without one nothing is added.
 */
#ifndef GT_SCHED_H
#define GT_SCHED_H

#include "buffers.h"

/* Where a thread is, as the kernel has it now; false: that is not known. */
struct gt_where_now {
    bool sleeps, runs; /* neither: it is in a run queue */
    uint32_t cpu;
};
typedef bool gt_where_fn(uint32_t tid, struct gt_where_now *where);

/* on: whether it is wanted; may_watch: whether the caller has descriptors of its own. */
void gt_sched_init(bool on, bool (*may_watch)(void), gt_where_fn *where);

/* From here on no other thread is watched (seccomp.c). Any thread. */
void gt_sched_forbid(void);

/* A recording begins; it has ended. */
void gt_sched_open(void);
void gt_sched_close(void);

/* Generation gen begins; all threads are in it. */
void gt_sched_next(uint32_t gen);

/* Whether threads are watched, in the generation under way. */
bool gt_sched_is_on(void);

/* How many Ps are CPUs: it is on, and the kernel allows it; or 0. */
uint32_t gt_sched_cpus(void);

/* Whether the events of generation gen are to be completed: they wait until it is over. */
bool gt_sched_covers(uint32_t gen);

/* Finds new threads and empties the rings, at least so often; when that is due, -1: never. */
#define GT_SCHED_NS 20000000
void gt_sched_poll(uint64_t now);
int64_t gt_sched_idle_ns(uint64_t now);

/*
 * Generation gen is over, and gt_sched_next was called for the next one: its events, encoded in
 * *packed and as they are in *plain, are completed, and both are other buffers then. 0 or -errno;
 * what follows in the file would contradict.
 */
int gt_sched_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain);

/* The statuses with which a file ends, as the completed events before have it; NULL: no memory. */
struct gt_buf *gt_sched_end(uint32_t gen, struct gt_buf *packed);

/* Threads that could not be watched, for limits of descriptors or locked memory. Any thread. */
uint64_t gt_sched_unwatched(void);

/* Gaps in the kernel's records, in this recording. */
uint64_t gt_sched_gaps(void);

void gt_sched_after_fork(void);

#endif
