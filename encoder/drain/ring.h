/*
 * The flight recorder's memory: the last generations of a recording, oldest first. Each is in a
 * mapping of its own that is as large as it needs, or in the black box, if there is one. A kept
 * generation has its events, and the stacks and strings that they use; names are looked up when it
 * is written. Memory of stacks and strings that only kept generations use (era.h) counts too.
 * Drain side only.
 */
#pragma once

#include "encoder/file/kept_generation.h"

/* Empties the ring, and sets what it holds at most: bytes of mappings, and ns (0: no limit). */
void gt_ring_open(uint64_t bytes, uint64_t ns);

/*
 * Takes over a closed generation: copies its buffers, and moves the CPU samples from before
 * `until`. In `kept` the members from gen to events are set. Forgets the oldest generations to
 * make room. false: the system has no memory for it, or it is larger than the whole ring.
 */
bool gt_ring_keep(const struct gt_kept *kept, const struct gt_buf *early,
                  const struct gt_buf *plain, uint64_t until);

/*
 * The oldest of the newest generations that fit into `bytes` of mappings; at least the newest one.
 * NULL: the ring is empty.
 */
const struct gt_kept *gt_ring_newest(size_t bytes);

/* Bytes of all mappings. Any thread. */
size_t gt_ring_memory(void);

/* The oldest era of stacks and strings that kept generations use; UINT32_MAX: none. */
uint32_t gt_ring_first_era(void);

/*
 * Forgets the oldest generations while the stacks and strings that they use take too much memory.
 */
void gt_ring_trim(void);

/* Forgets all generations. */
void gt_ring_clear(void);

/* In a forked child, before gt_ring_clear: the generations are in the parent's black box. */
void gt_ring_leave(void);
