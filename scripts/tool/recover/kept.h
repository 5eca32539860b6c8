/* The generations that a flight recorder has left in its black box. */
#pragma once

#include "boxed.h"

#include "encoder/file/kept_generation.h"

/*
 * Calls fn for each kept generation, oldest first, with a copy in this process's memory. Adds to
 * *sum. Returns the number of the last one; 0: there is none.
 */
uint32_t gt_kept_recover(const struct gt_boxed *b, void (*fn)(const struct gt_kept *k),
                         struct gt_boxed_sum *sum);
