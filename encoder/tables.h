/* The batches of the v2 family: a generation's stack and string tables, its clock, its end. Drain
 * side only. */
#ifndef GT_TABLES_H
#define GT_TABLES_H

#include "clock.h"
#include "drain.h"
#include "ring.h"
#include "varint.h"

/*
 * Writes the CPU samples from before `until`, and the stack, string and clock batches of gen to the
 * output. snapshot: taken in gen.
 */
void gt_tables_write(const struct gt_drain_config *config, uint32_t gen,
                     const struct gt_clock_snapshot *snapshot, uint64_t until);

/* The same for a generation that was kept. */
void gt_tables_write_kept(const struct gt_drain_config *config, const struct gt_kept *kept);

/* Longest encoding of a batch header. */
#define GT_BATCH_HEADER_MAX (1 + 4 * GT_VARINT_MAX)

/* The header of a batch with `size` bytes of payload, at p; returns its end. */
uint8_t *gt_tables_batch_header(uint8_t *p, uint32_t gen, uint32_t m, uint64_t ts, uint32_t size);

/* A whole batch to the output. */
void gt_tables_write_batch(uint32_t gen, uint32_t m, uint64_t ts, const void *data, uint32_t size);

#endif
