/*
 * Which thread ran where and when: the stretches of time in which a thread had a P. With
 * GOTRACE_SCHED a P is a CPU (GT_KNOWN_CPUS).
 */
#pragma once

#include "encoder/base/memo.h"

#define GT_STRETCH_OPEN UINT64_MAX
struct gt_stretch {
    uint64_t from, to; /* ns; to: GT_STRETCH_OPEN while it lasts */
    const void *who;
};

/* In order of time. Zero-initialised. */
struct gt_stretches {
    struct gt_stretch *at;
    size_t n;
};

void gt_stretches_add(struct gt_stretches *s, uint64_t from, uint64_t to, const void *who);

/*
 * Calls fn for each stretch with the length of its part between the two times, the latest stretch
 * first. Returns the sum.
 */
typedef void gt_stretch_fn(void *arg, const void *who, uint64_t ns);
uint64_t gt_stretches_between(const struct gt_stretches *s, uint64_t from, uint64_t to,
                              gt_stretch_fn *fn, void *arg);

/* The stretches of each P. Zero-initialised. */
struct gt_running {
    struct gt_memo by_p;
};

/* Notes that `who` has the P from now on; NULL: no thread has it. */
void gt_running_note(struct gt_running *r, uint64_t p, const void *who, uint64_t ns);

/* The stretches of a P; NULL: no thread ever ran on it. */
const struct gt_stretches *gt_running_on(const struct gt_running *r, uint64_t p);
