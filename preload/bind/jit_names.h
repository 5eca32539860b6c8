/*
 * Names of code that this process makes at run time. The process publishes them in a jitdump that
 * it has mapped, else in /tmp/perf-PID.map, or through GDB's JIT interface. Drain side only.
 */
#pragma once

#include "symbolize/symbolize.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Sets the time of later look-ups, in CLOCK_MONOTONIC. read: also reads the new entries of the
 * files, for a time that is over.
 */
void gt_made_of_time(uint64_t begin_ns, uint64_t end_ns, bool read);

/* Names the function at an address outside of all modules. false: there is no name, or no certain
 * one. */
bool gt_made_name(uint64_t pc, struct gt_sym_frame *frame);

/* Called in a forked child, which has its parent's code. */
void gt_made_after_fork(void);
