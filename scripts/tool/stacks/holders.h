/* Who holds what a thread waits for, where only memory beside it or the stacks tell that. */
#ifndef GT_HOLDERS_H
#define GT_HOLDERS_H

#include "still.h"

/* After waits.c has found what all threads wait for, and when it has found it anew for this one. */
void gt_find_holder(const struct gt_still *still, struct gt_task *task);

/* Of a thread that waits for Python's GIL: changes when that has another owner; 0: it has. */
uint64_t gt_gil_turn(const struct gt_still *still, const struct gt_task *task);

#endif
