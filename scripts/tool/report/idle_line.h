/* The line of a report that sums up the idle waits, which its rows leave out: idle.h. */
#pragma once

#include "idle.h"

void gt_idle_sum_print(struct gt_idle_sum *sum);
