/*
 * CPU samples: where threads were while they used the CPU. The kernel takes them (watch.h), or a
 * signal handler in the thread.
 *
 * That puts them into a ring of the thread's own. It may have interrupted any of our own code: it
 * takes no lock, and knows only its ring. The drain side
 * empties the rings and writes what was in them with the generation. A program that has no drain
 * thread yet gets one at its next hook when a ring fills; one that only computes may never come by,
 * and goes on in a larger ring.
 *
 * | | put (the thread's handler) | collect (drain side) |
 * |---|---|---|
 * | put (release store of head, acquire load of tail) | never two at a time: all signals are
 * blocked | head: the record is whole; tail: its place is free | | collect (acquire load of head,
 * release store of tail) | the same | one at a time |
 */
#ifndef GT_SAMPLES_H
#define GT_SAMPLES_H

#include "format.h"

#include <stdatomic.h>

struct gt_sample {
    uint64_t ts, g;
    uint32_t m, p;
    uint32_t cpu;   /* that is the P where Ps are CPUs */
    uint32_t epoch; /* of the module map */
    uint32_t times; /* the sample counts as so many */
    uint32_t n;     /* pcs, the interrupted one first, then return addresses */
};

struct gt_sample_ring {
    struct gt_sample_ring *next;
    _Atomic uint32_t head, tail; /* words ever put, taken */
    uint64_t pcs[GT_FRAMES_MAX]; /* room for the handler's walk, as the next two */
    uint64_t native[GT_FRAMES_MAX];
    uintptr_t sp[GT_FRAMES_MAX];
    uint32_t size; /* in words, a power of 2 */
    uint64_t words[];
};

/* A record is put word by word; what the handler and the drain side share needs no lock. */
_Static_assert(sizeof(struct gt_sample) % sizeof(uint64_t) == 0, "a record is of whole words");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler takes no lock");

/* A new ring, known to the drain side, for ever; NULL without memory. */
struct gt_sample_ring *gt_samples_ring(void);

/*
 * The sample with the first n of ring->pcs. Wakes the drain side when there are many. Returns the
 * thread's ring from now on.
 */
struct gt_sample_ring *gt_samples_put(struct gt_sample_ring *ring, const struct gt_sample *sample);

/* Whether there are many. One load. */
extern _Atomic bool gt_samples_crowded;

/* How many were lost in full rings of the largest size. */
uint64_t gt_samples_lost(void);

/* Drain side ---------------------------------------------------------------------------------- */

/* Takes what is in the rings, to be written later; or this one. */
void gt_samples_collect(void);
void gt_samples_take(const struct gt_sample *sample, const uint64_t *pcs);

/* So many could not be taken. */
void gt_samples_lose(uint64_t n);

struct gt_taken_sample {
    uint64_t ts, g;
    uint32_t m, p, times;
    struct gt_stack *stack;
};

/* Bytes of what was taken. */
size_t gt_samples_memory(void);

/* Marks the stacks of all samples from before `until` as used in gen; how many samples. */
size_t gt_samples_use(uint32_t gen, uint64_t until);

/* Calls fn for each of those, as often as it counts, and forgets them. */
void gt_samples_each(uint64_t until, void (*fn)(const struct gt_taken_sample *s));

/* The same for n that are the caller's. */
void gt_samples_tell(const struct gt_taken_sample *s, size_t n,
                     void (*fn)(const struct gt_taken_sample *s));

/* The same into an array of gt_samples_use's length, or NULL. */
void gt_samples_move(uint64_t until, struct gt_taken_sample *out);

/* The stacks of those that stay, in the newest era. */
void gt_samples_renew(void);

/* What was taken so far is not of interest. */
void gt_samples_forget(void);

/* In a forked child: there are no rings. */
void gt_samples_after_fork(void);

#endif
