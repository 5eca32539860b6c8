/* Finds the busiest part of a trace: what to show first of a trace too large to show whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GT_WHEREVER UINT64_MAX

/*
 * Finds the part of at most a second with the most events, but no more than `most`; in ns since
 * the beginning. With a time `at`, finds the part around that time. false: the whole trace has no
 * more than `most` events. In a file of 1 GiB or more, only estimates the event density at up to
 * 255 places.
 */
bool gt_busiest(const char *path, uint64_t most, uint64_t at, uint64_t *from, uint64_t *to);
