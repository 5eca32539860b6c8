/*
 * Busy waiting: threads that wait for others on a CPU, in a loop that changes nothing. By events
 * these are yields again and again (preload/hooks/yield.h); by samples, code that can only wait.
 */
#pragma once

#include "critical_path.h"

/* The loop in which threads spun longest; all times in ns on a CPU. */
struct gt_spinning {
    uint64_t ns, all_ns;               /* in that loop; in all such loops */
    uint64_t ran_ns;                   /* how long all threads ran, spinning or not */
    uint64_t longest, longest_at;      /* the longest stretch */
    uint32_t section, thread, threads; /* section: GT_NOBODY if no thread spun */
};

struct gt_spinning gt_spinning_find(struct gt_sections *sections, uint64_t from, uint64_t to);

/* How long threads spin on the path, or let others run meanwhile, in ns. */
uint64_t gt_spinning_on(const struct gt_critical_path *path, const struct gt_sections *sections);
