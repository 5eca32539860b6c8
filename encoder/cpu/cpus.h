/*
 * Encodes a generation's events anew, with the CPUs that the kernel's records name (sched.h): a P
 * is a CPU, and has its number. A thread has a P while it is on that CPU. In a call that makes it
 * sleep a thread loses its P, as in Go. Where a thread's CPU is not known, or another thread seems
 * to have it, the thread gets the P of its writer, numbered behind the CPUs. That happens because
 * threads do not enter a generation all at once. Drain side only.
 */
#pragma once

#include "merge.h"
#include "encoder/thread/batch.h"

/* cpus: how many CPUs the machine may have. Called before there are writers. */
void gt_cpus_init(uint32_t cpus);

uint32_t gt_cpus_count(void);

/* Takes all Ps from their threads: a recording begins, or a forked child. */
void gt_cpus_reset(void);

/*
 * For going on with another process's trace, where a reader may know any P. gt_cpus_held: thread m
 * has P p; m 0: p is idle. gt_cpus_stood: an event that stands in that trace.
 */
void gt_cpus_go_on(void);
void gt_cpus_held(uint32_t p, uint32_t m, bool in_call);
void gt_cpus_stood(const struct gt_merge_event *ev);

/* Begins generation gen, which has so many streams at most. false: no memory. */
bool gt_cpus_begin(uint32_t gen, size_t streams);

/* Adds an event; gt_merge calls it. */
void gt_cpus_put(const struct gt_merge_event *ev);

/* Ends the generation and returns its batches; false: a part is missing, for want of memory. */
bool gt_cpus_end(struct gt_packed *packed);

/* How many more events came out than went in, in all recordings. Any thread. */
int64_t gt_cpus_added(void);
