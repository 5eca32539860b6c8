/*
 * A kernel that gives CPUs to the threads of a schedule and takes them away, in place of
 * perf_event_open(2): what encoder/cpu/perf.h promises, of threads that are played.
 */
#pragma once

#include "encoder/cpu/sched.h"
#include "encoder/format/usage.h"

/* No thread has a CPU; `below`: a random number. */
void kernel_begin(uint64_t (*below)(uint64_t n));

/* The thread does something at that time, so it has a CPU. */
void kernel_runs(uint32_t tid, uint64_t ns);

/* It may lose it: to another one, or because it waits. */
void kernel_may_switch(uint32_t tid, bool waits, uint64_t ns);

bool kernel_may_watch(void);
bool kernel_where(uint32_t tid, struct gt_where_now *where);
bool kernel_usage(uint32_t tid, unsigned wanted, struct gt_usage *usage);
