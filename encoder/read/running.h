/*
 * Who ran where and when: the stretches of time in which a thread had a P. With GOTRACE_SCHED a P
 * is a CPU (GT_KNOWN_CPUS).
 */
#ifndef GT_READ_RUNNING_H
#define GT_READ_RUNNING_H

#include "encoder/base/memo.h"

#define GT_STRETCH_OPEN UINT64_MAX
struct gt_stretch {
    uint64_t from, to; /* ns; to: GT_STRETCH_OPEN while it lasts */
    const void *who;
};

/* In the order of time. Zeros to begin with. */
struct gt_stretches {
    struct gt_stretch *at;
    size_t n, room;
};

void gt_stretches_add(struct gt_stretches *s, uint64_t from, uint64_t to, const void *who);

/* Calls fn with what lies between the two times of each, the latest first; returns their sum. */
typedef void gt_stretch_fn(void *arg, const void *who, uint64_t ns);
uint64_t gt_stretches_between(const struct gt_stretches *s, uint64_t from, uint64_t to,
                              gt_stretch_fn *fn, void *arg);

/* By P. Zeros to begin with. */
struct gt_running {
    struct gt_memo by_p;
};

/* `who` has the P from now on, NULL: nobody. */
void gt_running_note(struct gt_running *r, uint64_t p, const void *who, uint64_t ns);

/* NULL: nobody ever had it. */
const struct gt_stretches *gt_running_on(const struct gt_running *r, uint64_t p);

#endif
