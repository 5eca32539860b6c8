/*
 * The v1 family, Go 1.5 to 1.21: translates a generation's v2 events and writes them. Events
 * without a counterpart in v1 are left out: statuses of goroutines that are known, sequence
 * numbers that begin anew. Drain side only.
 */
#pragma once

#include "encoder/file/kept_generation.h"

/* Begins a new file; the output is open. */
void gt_v1_open(void);

/*
 * Goes on in a file that has a header and complete pages already. gt_v1_stands is then called with
 * each of their events, in the file's order; arguments that this version does not have are 0.
 * false: no memory.
 */
struct gt_v1_stands {
    enum gt_v1_type type;
    uint32_t p;
    uint64_t seq, ts; /* seq: in Go 1.5's format only */
    uint64_t arg[GT_V1_ARGS_MAX];
};
void gt_v1_go_on(void);
bool gt_v1_stands(const struct gt_v1_stands *event);

/*
 * Writes generation gen, whose events are in the buffers (see gt_merge). First come the stacks and
 * strings that it uses, so that they are there wherever the file is cut. Then come the events, and
 * the CPU samples from before `until`. `kept`: NULL, or the kept generation, whose samples are
 * written instead. 0 or -errno.
 */
int gt_v1_write(uint32_t gen, const struct gt_kept *kept, const struct gt_buf *packed,
                const struct gt_buf *plain, uint64_t until);

/* Sets the number of CPUs; 0, the default: as many as this host has. */
void gt_v1_set_cpus(uint64_t n);

/*
 * The new file is of a Go program, and says more. Collections and pauses last while other things
 * happen. Channels have events. A call that takes no time is one event, as in Go.
 */
void gt_v1_of_go(void);

/*
 * Ends the file at ts: until then nothing has changed. whole: marks the file as missing nothing,
 * should nothing follow (GT_V1_WHOLE).
 */
void gt_v1_end(uint64_t ts, bool whole);
