/* Annotated tasks of one name: where the time of the usual ones goes, and of the slow ones. */
#ifndef GT_WHY_TASKS_H
#define GT_WHY_TASKS_H

#include "path.h"

struct gt_tasks {
    uint64_t n;              /* that began and ended in the interval */
    uint64_t p50, p99, most; /* ns */
    /* Those of about the median and those from p99 on; how many that are. */
    struct gt_path usual, slow;
    uint64_t usual_n, slow_n;
    uint64_t slowest_at;
};

/* Ends the program with a message where there are none of that name. */
void gt_tasks_find(struct gt_tasks *tasks, struct gt_sections *sections, const char *name,
                   uint64_t from, uint64_t to);

#endif
