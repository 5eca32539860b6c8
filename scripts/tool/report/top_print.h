/* `gotrace top`: rows of waits or of samples. */
#pragma once

#include "top_rows.h"

/* Prints the whole report. gt_top_sum_up comes first. */
void gt_top_print(struct gt_top *top);
