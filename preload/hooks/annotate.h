/* Annotations (gotrace.h): the regions that a thread has open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* gotrace_region_begin and _end, for our own code. */
uint64_t gt_region_begin(uint64_t task, const char *name);
void gt_region_end(uint64_t region);

/* In a forked child: the parent's tasks are not in the child's trace. */
void gt_annotate_after_fork(void);
