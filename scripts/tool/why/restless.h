/*
 * Event loops that never sleep: what they wait for is always ready, and they do nothing about it.
 * By its events such a thread waits most of its life; by the kernel's count it never gave up its
 * CPU for that.
 */
#pragma once

#include "loops.h"

/* The loop of which that is known; or NULL. */
const struct gt_loop *gt_restless_find(const struct gt_loops *loops,
                                       const struct gt_sections *sections);

/* Puts it before all other findings. */
void gt_restless_tell(const struct gt_loop *loop, struct gt_findings *findings,
                      const struct gt_sections *sections);
