/*
 * Finds the innermost of many nested address ranges at an address. The ranges are collected first,
 * then flattened into disjoint spans, so that a look-up is one binary search.
 */
#pragma once

#include "encoder/base/arena.h"
#include "encoder/base/sort.h"

#define GT_NO_ID UINT32_MAX

struct gt_ranges {
    uint64_t base, limit; /* the module's code is in [base, limit) */
    struct gt_pair *pairs;
    size_t n, capacity;
    struct gt_pc_span *spans; /* room for the flattened ranges */
    size_t spans_capacity;
};

struct gt_spans {
    struct gt_pc_span {
        uint32_t at, id; /* for base + at up to the next span; id GT_NO_ID: a gap */
    } * span;
    size_t n;
};

/* Adds a range; of two equal ranges, the outer one first. Without memory, the range is lost. */
void gt_ranges_add(struct gt_ranges *r, uint64_t lo, uint64_t hi, uint32_t id);

/* Turns the ranges into spans. Empties r, which keeps its room. */
void gt_ranges_flatten(struct gt_ranges *r, struct gt_spans *out, struct gt_arena *arena);

void gt_ranges_free(struct gt_ranges *r);

/* The ID at addr, an absolute address as for gt_ranges_add, or GT_NO_ID. */
uint32_t gt_spans_find(const struct gt_spans *spans, uint64_t base, uint64_t addr);
