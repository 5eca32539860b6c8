/* What a thread did lately. So a report can say what a wait for that thread was waiting for. */
#pragma once

#include "shares.h"

#include <stdint.h>

struct gt_callers;

/* A thread's last states, as a ring. Zero-initialised. */
struct gt_history {
    struct gt_past {
        uint64_t from, to; /* ns */
        enum gt_kind kind;
        const struct gt_callers *stack; /* of a wait or call; or NULL */
    } * past;
    uint64_t n;
};

void gt_history_add(struct gt_history *h, const struct gt_past *past);

/* The time up to which the history is known, or `least` if that is later. */
uint64_t gt_history_until(const struct gt_history *h, uint64_t least);

/*
 * Calls fn for each known state with its part between the two times. Returns the sum of the parts.
 */
typedef void gt_past_fn(void *arg, const struct gt_past *part);
uint64_t gt_history_between(const struct gt_history *h, uint64_t from, uint64_t to, gt_past_fn *fn,
                            void *arg);
