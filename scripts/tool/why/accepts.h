/*
 * Uneven accepts: one worker of several gets most connections, and they wait behind each other
 * while the other workers are idle. Each worker has a listening socket of its own (SO_REUSEPORT),
 * or the first one to come takes all that are there. Workers that serve different addresses look
 * the same: no event tells which socket a thread listens at.
 */
#pragma once

#include "survey.h"

struct gt_accepts {
    uint32_t worker;     /* the one that accepted most; GT_NOBODY: none is uneven */
    uint32_t workers;    /* of its pool: threads that accept, or rest where it rests */
    uint64_t all, its;   /* recorded connections, of the pool and of the worker */
    uint64_t late;       /* those that waited while the worker served another one */
    uint64_t late_at;    /* when the worker accepted the first of these */
    double busy, others; /* parts of the interval: its work; of the others, on average */
};

/* Finds the worst pool of the interval. */
struct gt_accepts gt_accepts_find(const struct gt_survey *survey, struct gt_sections *sections);
