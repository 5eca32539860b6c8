/*
 * The v1 family, Go 1.5 to 1.21: a generation's v2 events translated and written. What has no
 * counterpart (statuses of goroutines that are known, sequence numbers that begin anew) is left
 * out. Drain side only.
 */
#ifndef GT_V1_H
#define GT_V1_H

#include "encoder/ring.h"

/* A new file; the output is open. */
void gt_v1_open(void);

/*
 * The same of a file that has whole pages, from its header on. Each of their events, in the file's
 * order, is told then; arguments that this version does not have are 0. false: no memory.
 */
struct gt_v1_stands {
    enum gt_v1_type type;
    uint32_t p;
    uint64_t seq, ts; /* seq: of Go 1.5 */
    uint64_t arg[GT_V1_ARGS_MAX];
};
void gt_v1_go_on(void);
bool gt_v1_stands(const struct gt_v1_stands *event);

/*
 * Writes generation gen, whose events are in the buffers (see gt_merge): first the stacks and
 * strings it uses, so that they are there wherever the file is cut, then the events, and the CPU
 * samples from before `until`; or those that were kept with it, else `kept` is NULL. 0 or -errno.
 */
int gt_v1_write(uint32_t gen, const struct gt_kept *kept, const struct gt_buf *packed,
                const struct gt_buf *plain, uint64_t until);

/* How many CPUs there are; 0, as at first: as many as here. */
void gt_v1_set_cpus(uint64_t n);

/*
 * The new file is of a Go program, of which more is known: its collections and pauses go on while
 * other things happen, its channels; a call that takes no time is one event, as Go has it.
 */
void gt_v1_of_go(void);

/* All is as it was until ts; whole: and nothing is missing (GT_V1_WHOLE), should nothing follow. */
void gt_v1_end(uint64_t ts, bool whole);

#endif
