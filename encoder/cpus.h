/*
 * A generation's events, encoded anew with what the kernel tells (sched.h): Ps are CPUs, and have
 * their numbers. A thread has one while it is on that CPU; in a call that makes it sleep it loses
 * it, as in Go. Where the CPU is not known, or another thread seems to have it (not all threads
 * enter a generation at once), it has the P of its writer, which is numbered behind the CPUs.
 * Drain side only.
 */
#ifndef GT_CPUS_H
#define GT_CPUS_H

#include "merge.h"
#include "v2.h"

/* cpus: how many the machine may have. Before there are writers. */
void gt_cpus_init(uint32_t cpus);

uint32_t gt_cpus_count(void);

/* Nobody has a P: a recording begins, or a forked child. */
void gt_cpus_reset(void);

/*
 * Another process's trace goes on: a reader may know any P. Then, who has one, 0: nobody; and each
 * event that was put there.
 */
void gt_cpus_go_on(void);
void gt_cpus_held(uint32_t p, uint32_t m, bool in_call);
void gt_cpus_stood(const struct gt_merge_event *ev);

/* Generation gen, of so many streams at most. false: no memory. */
bool gt_cpus_begin(uint32_t gen, size_t streams);

/* An event, as gt_merge tells it. */
void gt_cpus_put(const struct gt_merge_event *ev);

/* The batches; false: no memory, a part is missing. */
bool gt_cpus_end(struct gt_packed *packed);

/* How many events more were put out than in, in all recordings. Any thread. */
int64_t gt_cpus_added(void);

#endif
