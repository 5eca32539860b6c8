/*
 * P slots. A P belongs to a thread for the thread's life. Slots are reused, smallest number first.
 * Any thread; lock-free.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define GT_PROCS_MAX 65536u

struct gt_p {
    uint32_t id;
    uint32_t status_gen;
    uint32_t last_gen; /* in which a thread last released it */
    uint32_t seq;
    uint64_t left; /* when a thread last released it */
    uint8_t state; /* enum gt_p_state */
};

/*
 * Keeps the first n slots, fewer than all, from being taken. Called before any is taken; also holds
 * in forked children.
 */
void gt_procs_reserve(uint32_t n);

/* An idle P for a thread in generation gen; NULL: 65,536 threads have one. */
struct gt_p *gt_procs_take(uint32_t gen);

/* Frees p, in generation gen, at trace time `at`. */
void gt_procs_release(struct gt_p *p, uint32_t gen, uint64_t at);

/* In a forked child: frees all slots that are not reserved. */
void gt_procs_after_fork(void);

/* After gt_procs_after_fork: keeps p from being taken. */
void gt_procs_set_aside(struct gt_p *p);
