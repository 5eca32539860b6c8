/* What a thread did lately, so that of another one's wait can be said what it was waiting for. */
#ifndef GT_READ_HISTORY_H
#define GT_READ_HISTORY_H

#include "shares.h"

#include <stdint.h>

struct gt_callers;

/* A thread's last states, as a ring. Zeros to begin with. */
struct gt_history {
    struct gt_past {
        uint64_t from, to; /* ns */
        enum gt_kind kind;
        const struct gt_callers *stack; /* of a wait or call; or NULL */
    } * past;
    uint64_t n;
};

void gt_history_add(struct gt_history *h, const struct gt_past *past);

/* Until when it is known, or that time if it is later. */
uint64_t gt_history_until(const struct gt_history *h, uint64_t least);

/* Calls fn with what lies between the two times of each state that is known; returns their sum. */
typedef void gt_past_fn(void *arg, const struct gt_past *part);
uint64_t gt_history_between(const struct gt_history *h, uint64_t from, uint64_t to, gt_past_fn *fn,
                            void *arg);

#endif
