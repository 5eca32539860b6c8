/*
 * Names of code that this process makes at run time, from where it tells them: a jitdump that it
 * has mapped, else /tmp/perf-PID.map. Drain side only.
 */
#ifndef GT_PRELOAD_MADE_H
#define GT_PRELOAD_MADE_H

#include "symbolize/symbolize.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What is asked from here on is of that time, CLOCK_MONOTONIC. read: what is new in the files is
 * read, as far as that is over.
 */
void gt_made_of_time(uint64_t begin_ns, uint64_t end_ns, bool read);

/* The function at an address outside of all modules. false: it has no name, or none that is sure.
 */
bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame);

/* In a forked child, which has its parent's code. */
void gt_made_after_fork(void);

#endif
