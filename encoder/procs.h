/*
 * P slots. A P belongs to a thread for its life; slots are reused, smallest number first. Any
 * thread; lock-free.
 */
#ifndef GT_PROCS_H
#define GT_PROCS_H

#include "format.h"

#include <stdatomic.h>
#include <stdint.h>

#define GT_PROCS_MAX 65536u

struct gt_p {
    uint32_t id;
    uint32_t status_gen;
    uint32_t last_gen; /* in which it was given up last */
    uint32_t seq;
    uint64_t left; /* when it was given up last */
    uint8_t state; /* enum gt_p_state */
};

/* The first n, which are fewer than all, are never taken. Before any is, and for forked children.
 */
void gt_procs_reserve(uint32_t n);

/* An idle P for a thread in generation gen; NULL: 65,536 threads have one. */
struct gt_p *gt_procs_take(uint32_t gen);

/* In generation gen, at trace time `at`. */
void gt_procs_release(struct gt_p *p, uint32_t gen, uint64_t at);

/* In a forked child: all are free. */
void gt_procs_after_fork(void);

/* Afterwards: this one is not to be taken. */
void gt_procs_set_aside(struct gt_p *p);

#endif
