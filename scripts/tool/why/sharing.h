/*
 * Pools whose threads take their work from one queue: they end together, however unequal their
 * parts were. A replay repeats the parts. If it ends some of these threads earlier than others,
 * they would have shared what the others had left.
 */
#pragma once

#include "program.h"
#include "survey.h"

struct gt_sharing {
    const struct gt_program *program;
    const struct gt_survey *survey;
    bool *shares;     /* by pool */
    bool *takes;      /* by pool: its threads did a different number of pieces in the same time */
    uint64_t *pieces; /* by thread of such a pool: how many */
    uint64_t *end;    /* by thread: when it was done in the last replay */
};

/* Looks which pools of the trace do so. */
struct gt_sharing gt_sharing_find(const struct gt_program *program, const struct gt_survey *survey);

/*
 * How much earlier the last replay, which took `ns`, ends with shared work, in ns. pieces: only of
 * pools whose pieces of work are known.
 */
uint64_t gt_sharing_saves(const struct gt_sharing *sharing, uint64_t ns, bool pieces);

/*
 * The longest time in that section of a thread that takes its pieces of work from a queue, in ns.
 * 0: no such thread is ever there.
 */
uint64_t gt_sharing_time_in(const struct gt_sharing *sharing, uint32_t section);

void gt_sharing_free(struct gt_sharing *sharing);
