/*
 * Real CPU state (GOTRACE_SCHED): the kernel records when each thread gets a CPU and loses it
 * (watch.h). Those records put a generation's events in order. They also complete the events,
 * where a thread ran by its events but had no CPU: it was preempted, or it waits for what no hook
 * sees. A wait that is over ends where its thread had a CPU again. Drain side only, but for what
 * says otherwise.
 */
#pragma once

#include "encoder/thread/buffers.h"
#include "watch.h"

/* Where the kernel has a thread now. gt_where_fn returns false if that is not known. */
struct gt_where_now {
    bool sleeps, runs; /* neither: it is runnable */
    uint32_t cpu;
    uint64_t cpu_ns; /* on any CPU, since it was born */
};
typedef bool gt_where_fn(uint32_t tid, struct gt_where_now *where);

/*
 * CPU state is wanted. Returns the functions that gt_watch_init is to be given. Called before
 * there are writers.
 */
struct gt_watch_switches gt_sched_init(gt_where_fn *where);

/* A recording begins; or it has ended, and no more generations are completed. */
void gt_sched_open(void);
void gt_sched_close(void);

/*
 * The most bytes of events that are put in order at a time: a thread that waits for that waits
 * briefly.
 */
enum { GT_SCHED_BYTES = 16 << 20 };

/*
 * Generation gen is under way: all threads are in it, and are watched if possible. waits: nothing
 * of the generation before is written, and it is small, so it can be completed, too. None of its
 * threads was watched, but their CPU clocks tell something (unwatched.h).
 */
void gt_sched_next(uint32_t gen, bool waits);

/* Whether the generation under way is to be completed. */
bool gt_sched_is_on(void);

/* How many Ps are CPUs; 0 unless CPU state is recorded and the kernel allows it. */
uint32_t gt_sched_cpus(void);

/*
 * Whether the events of generation gen are to be completed: they are not written before it is
 * over.
 */
bool gt_sched_covers(uint32_t gen);

/*
 * Completes generation gen, which is over. gt_sched_next was called for the next generation, and
 * gt_watch_note_ends has noted the threads that ended. The events are encoded in *packed, and as
 * their writers left them in *plain; both are replaced by other buffers. 0 or -errno: then events
 * that follow in the file would contradict the events before.
 */
int gt_sched_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain);

/* The completed generation is in the file, or kept: gives back the buffers it was made from. */
void gt_sched_written(void);

/*
 * The statuses with which a file ends, changed to agree with the completed events before them;
 * NULL: no memory.
 */
struct gt_buf *gt_sched_end(uint32_t gen, struct gt_buf *packed);

/*
 * For a process that goes on with another process's trace, where all generations are completed.
 * gt_sched_follow reads a completed generation, which is written. gt_sched_go_on completes one
 * that is not written, and of which only the events are known. 0 or -errno.
 */
void gt_sched_resume(void);
struct gt_packed;
int gt_sched_follow(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain);
int gt_sched_go_on(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                   struct gt_packed *completed);

/* Gaps in the kernel's records, in this recording. */
uint64_t gt_sched_gaps(void);

void gt_sched_after_fork(void);
