/*
 * CPU samples: where threads were while they used the CPU. The kernel takes them (watch.h), or a
 * signal handler in the thread.
 *
 * The handler puts its samples into a ring of the thread's own. The handler may have interrupted
 * any of our own code, so it takes no lock, and knows only its ring. The drain side empties the
 * rings and writes the samples with the generation. When a ring fills in a program that has no
 * drain thread yet, the program's next hook starts one. A thread that only computes may never
 * reach a hook: it goes on in a larger ring.
 *
 * Synchronization. put is called by the thread's handler, never two at a time, because all signals
 * are blocked. collect is called by the drain side, one at a time.
 * - put stores head with release, and collect loads it with acquire: the record is whole.
 * - collect stores tail with release, and put loads it with acquire: the record's place is free.
 */
#pragma once

#include "encoder/format/format.h"

#include <stdatomic.h>

struct gt_sample {
    uint64_t ts, g;
    uint32_t m, p;
    uint32_t cpu;   /* it is the P where Ps are CPUs */
    uint32_t epoch; /* of the module map */
    uint32_t times; /* how many samples this one stands for */
    uint32_t n;     /* number of pcs: the interrupted pc, then return addresses */
};

struct gt_sample_ring {
    struct gt_sample_ring *next;
    _Atomic uint32_t head, tail; /* words put and taken so far */
    uint64_t pcs[GT_FRAMES_MAX]; /* room for the handler's stack walk, like the next two */
    uint64_t native[GT_FRAMES_MAX];
    uintptr_t sp[GT_FRAMES_MAX];
    uint32_t size; /* in words, a power of 2 */
    uint64_t words[];
};

/* A record is put word by word. The handler and the drain side share atomics without locks. */
_Static_assert(sizeof(struct gt_sample) % sizeof(uint64_t) == 0, "a record is of whole words");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler takes no lock");

/* Makes a ring that the drain side empties for ever; NULL: no memory. */
struct gt_sample_ring *gt_samples_ring(void);

/*
 * Puts a sample with the first n of ring->pcs. Wakes the drain side when there are many samples.
 * Returns the ring that the thread uses from now on.
 */
struct gt_sample_ring *gt_samples_put(struct gt_sample_ring *ring, const struct gt_sample *sample);

/* Whether a ring has many samples. */
extern _Atomic bool gt_samples_crowded;

/* How many samples were lost. */
uint64_t gt_samples_lost(void);

/* Drain side ---------------------------------------------------------------------------------- */

/*
 * count returns how many Ps are CPUs: unless that is 0, a sample's P is its CPU. Called before
 * there are samples.
 */
void gt_samples_set_cpus(uint32_t (*count)(void));

/* Takes all samples in the rings, or this one, to be written later. */
void gt_samples_collect(void);
void gt_samples_take(const struct gt_sample *sample, const uint64_t *pcs);

/* Counts n samples that could not be taken. */
void gt_samples_lose(uint64_t n);

struct gt_taken_sample {
    uint64_t ts, g;
    uint32_t m, p, times;
    struct gt_stack *stack;
};

/* Bytes of the samples that were taken. */
size_t gt_samples_memory(void);

/*
 * Marks the stacks of all samples from before `until` as used in gen. Returns the number of
 * samples.
 */
size_t gt_samples_use(uint32_t gen, uint64_t until);

/* Calls fn for each sample from before `until`, s->times times, and forgets these samples. */
void gt_samples_each(uint64_t until, void (*fn)(const struct gt_taken_sample *s));

/* Calls fn for each of the caller's n samples, s->times times. */
void gt_samples_tell(const struct gt_taken_sample *s, size_t n,
                     void (*fn)(const struct gt_taken_sample *s));

/*
 * Moves the samples from before `until` into an array of the length that gt_samples_use returned.
 * NULL: forgets them.
 */
void gt_samples_move(uint64_t until, struct gt_taken_sample *out);

/* Renews the stacks of the samples that are kept: they are of the newest era then. */
void gt_samples_renew(void);

/* Forgets all samples so far. */
void gt_samples_forget(void);

/* In a forked child: there are no rings. */
void gt_samples_after_fork(void);
