/*
 * The v2 family, Go 1.22 and later: the bytes of the file. A generation is the batches of its
 * threads, and the tables that explain them: CPU samples, stacks, strings, the clock. Drain side
 * only. Errors are the output's: see gt_output_write.
 */
#pragma once

#include "encoder/thread/buffers.h"
#include "kept_generation.h"

#include "encoder/base/clock.h"

/* Begins a new file; the output is open. */
void gt_v2_open(void);

/* Goes on in a file that has a header and complete generations already. */
void gt_v2_go_on(void);

/* Allocates the memory that writing needs, as gt_output_reserve. */
bool gt_v2_reserve(void);

/* Begins a generation, with encoded batches or none. */
void gt_v2_begin(const struct gt_buf *encoded);

/* Writes batches of the generation; may be called any number of times. */
void gt_v2_write(const struct gt_buf *plain);

/*
 * Ends the generation, with the CPU samples from before `until`. snapshot: taken in gen. whole:
 * marks the file as missing nothing, should this be its last generation (GT_WHOLE).
 */
void gt_v2_end(uint32_t gen, const struct gt_clock_snapshot *snapshot, uint64_t until, bool whole);

/* Writes all of a kept generation. */
void gt_v2_write_kept(const struct gt_kept *kept);
