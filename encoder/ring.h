/*
 * The flight recorder's memory: the last generations of a recording, each in a mapping of its own
 * that is as large as it needs, oldest first; or in the black box, where there is one. Kept are
 * events and which stacks and strings they use; names are looked up when generations are written.
 * What stacks and strings take that nobody else uses any more (era.h) counts, too. Drain side only.
 */
#ifndef GT_RING_H
#define GT_RING_H

#include "buffers.h"
#include "samples.h"
#include "stacks.h"
#include "strings.h"

#include "encoder/base/clock.h"

struct gt_kept {
    struct gt_kept *next;
    size_t bytes; /* of the mapping, this struct included */
    uint32_t gen;
    uint32_t era;                      /* the oldest of its stacks and strings */
    struct gt_clock_snapshot snapshot; /* taken when it began */
    uint64_t from;                     /* no event is from before that, in trace time */
    uint64_t begin_ns, end_ns;
    uint64_t events;
    struct gt_buf *early, *plain; /* as they came */
    struct gt_stack **stacks;
    struct gt_string **strings;
    struct gt_taken_sample *samples;
    uint32_t n_stacks, n_strings, n_samples;
};

/* Empties it, and sets how much it holds at most: bytes of mappings, and ns; 0: any time. */
void gt_ring_open(uint64_t bytes, uint64_t ns);

/*
 * Takes over a closed generation as copies of its buffers, with CPU samples from before `until`;
 * `kept` has gen to events set. Forgets the oldest for it. false: the system has no memory for it,
 * or it is larger than all of the ring.
 */
bool gt_ring_keep(const struct gt_kept *kept, const struct gt_buf *early,
                  const struct gt_buf *plain, uint64_t until);

/* The first of the newest in so many bytes of mappings, but at least one; NULL: it is empty. */
const struct gt_kept *gt_ring_newest(size_t bytes);

/* Bytes of all mappings. Any thread. */
size_t gt_ring_memory(void);

/* The oldest era of stacks and strings that are kept; UINT32_MAX: none are. */
uint32_t gt_ring_first_era(void);

/* Forgets the oldest, should the stacks and strings that they keep have become too much. */
void gt_ring_trim(void);

/* Forgets everything. */
void gt_ring_clear(void);

/* In a forked child, before that: the black box that everything is in is the parent's. */
void gt_ring_leave(void);

#endif
