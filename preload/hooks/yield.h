/* Yields: a thread lets others run. */
#pragma once

#include "preload/shared/leaves.h"

/*
 * sched_yield: the thread lets others run, and stays runnable. If no other thread needs the CPU, it
 * returns at once, and threads that spin (OpenBLAS, LLVM's OpenMP) call it a million times a
 * second. So a yield is written only when it is over, and only if it took GOTRACE_SYSCALL_MIN or
 * longer, or if 1024 others of the thread were not written since the last one. Its reason is
 * GT_REASON_YIELDS if the thread did nothing else since the last one that was written: there were
 * 16 yields or more, never 10 us apart. gt_yield_begin returns what gt_yield_end needs; both keep
 * errno.
 */
uint64_t gt_yield_begin(void);
void gt_yield_end(enum gt_hook hook, uint64_t since);
