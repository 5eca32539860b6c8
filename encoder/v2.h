/*
 * The v2 family, Go 1.22 and later: the bytes of the file. A generation is its batches, as threads
 * wrote them, and what says what they mean: CPU samples, stacks, strings, the clock. Drain side
 * only; what goes wrong the output knows.
 */
#ifndef GT_V2_H
#define GT_V2_H

#include "buffers.h"
#include "ring.h"

#include "encoder/base/clock.h"
#include "encoder/base/varint.h"

/* A new file; the output is open. */
void gt_v2_open(void);

/* The same of a file that has whole generations, from its header on. */
void gt_v2_go_on(void);

/* As gt_output_reserve. */
bool gt_v2_reserve(void);

/* A generation begins, with encoded batches or none. */
void gt_v2_begin(const struct gt_buf *encoded);

/* Batches of it; any number of times. */
void gt_v2_write(const struct gt_buf *plain);

/*
 * The rest of it, with the CPU samples from before `until`. snapshot: taken in gen. whole: if it is
 * the file's last one, nothing is missing (GT_WHOLE).
 */
void gt_v2_end(uint32_t gen, const struct gt_clock_snapshot *snapshot, uint64_t until, bool whole);

/* All of a generation that was kept. */
void gt_v2_write_kept(const struct gt_kept *kept);

/* Encoded batches, in buffers that the caller gives back. Zeros to begin with. */
struct gt_packed {
    struct gt_buf *first, *last;
    bool again; /* events that stand elsewhere, too: the black box has them once */
};

/* Adds a batch of `size` bytes of payload. false: no memory; it is left out. */
bool gt_v2_pack(struct gt_packed *packed, uint32_t gen, uint32_t m, uint64_t ts, const void *data,
                uint32_t size);

#endif
