/*
 * Which of many nested address ranges is the innermost at an address. Collected first, then
 * flattened into disjoint spans: one binary search a lookup.
 */
#ifndef GT_RANGES_H
#define GT_RANGES_H

#include "encoder/base/arena.h"
#include "encoder/base/sort.h"

#define GT_NO_ID UINT32_MAX

struct gt_ranges {
    uint64_t base, limit; /* what lies outside [base, limit) is not code of this module */
    struct gt_pair *pairs;
    size_t n, capacity;
    struct gt_span *spans; /* room for what flattening makes of them */
    size_t spans_capacity;
};

struct gt_spans {
    struct gt_span {
        uint32_t at, id; /* from base + at up to the next span; GT_NO_ID: a gap */
    } * span;
    size_t n;
};

/* Outer ranges before inner ones that are equal. Out of memory, the range is lost. */
void gt_ranges_add(struct gt_ranges *r, uint64_t lo, uint64_t hi, uint32_t id);

/* Turns what was added into spans. r is empty then, with room for as much again. */
void gt_ranges_flatten(struct gt_ranges *r, struct gt_spans *out, struct gt_arena *arena);

void gt_ranges_free(struct gt_ranges *r);

/* The id at addr, which is an absolute address like those added, or GT_NO_ID. */
uint32_t gt_spans_find(const struct gt_spans *spans, uint64_t base, uint64_t addr);

#endif
