/* Annotated tasks of one name: where the time of usual tasks goes, and where that of slow ones. */
#pragma once

#include "critical_path.h"

struct gt_tasks {
    uint64_t n;              /* tasks that began and ended in the interval */
    uint64_t p50, p99, most; /* ns */
    /* Paths of the tasks around the median, and of those from p99 on; and the number of each. */
    struct gt_critical_path usual, slow;
    uint64_t usual_n, slow_n;
    uint64_t slowest_at;
};

/* Ends the program with a message if there is no task of that name. */
void gt_tasks_find(struct gt_tasks *tasks, struct gt_sections *sections, const char *name,
                   uint64_t from, uint64_t to);
