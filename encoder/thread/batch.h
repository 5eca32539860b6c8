/*
 * Batches of events as v2 files have them: a header, then the events. The drain side encodes them
 * in buffers where events are written anew, or wait for their file.
 */
#pragma once

#include "buffers.h"

#include "encoder/base/varint.h"

/* Longest encoding of a batch's header. */
enum { GT_BATCH_HEADER_MAX = 1 + 4 * GT_VARINT_MAX };

/* The header of a batch with `size` bytes of payload, at p; returns its end. */
uint8_t *gt_batch_header(uint8_t *p, uint32_t gen, uint32_t m, uint64_t ts, uint32_t size);

/* Encoded batches, in buffers that the caller gives back. Zero-initialised. */
struct gt_packed {
    struct gt_buf *first, *last;
    bool again; /* the events stand elsewhere, too: the black box must not have them twice */
};

/* Adds a batch of `size` bytes of payload. false: no memory; the batch is left out. */
bool gt_batch_pack(struct gt_packed *packed, uint32_t gen, uint32_t m, uint64_t ts,
                   const void *data, uint32_t size);
