/* The cause of a process's end, if the kernel has logged it. */
#pragma once

#include "encoder/drain/live.h"

/* Whether this system has not been restarted since that recording began. */
bool gt_cause_is_of_this_boot(const struct gt_origin *origin);

/* Prints the cause on standard error; prints nothing if it is not certain. */
void gt_cause_say(const struct gt_live *live);
