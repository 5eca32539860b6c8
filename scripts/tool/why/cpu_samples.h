/*
 * CPU samples of threads, and what they stand for. Most stretches between two recorded calls are
 * too short to have a sample: the samples of other stretches between the same calls stand for them.
 *
 * A sample in a call makes that call long: the signal's handler runs in it. So a call that is too
 * short to be recorded is recorded if it has a sample. Such samples stand for the stretch around
 * them, which consists of such calls.
 */
#pragma once

#include "graph.h"

/* Sorts the samples of all threads, once all steps are there. */
void gt_samples_sort(struct gt_graph *graph);

/* Index of the thread's first sample at `at` or later. */
size_t gt_lane_sample_from(const struct gt_lane *lane, uint64_t at);

/*
 * The sample that stands for a stretch of running without any: the next one, or else the last one,
 * in stretches between the same calls. NULL: these have too few.
 */
const struct gt_why_sample *gt_lane_sample_alike(const struct gt_lane *lane, uint32_t spot,
                                                 uint64_t at);
