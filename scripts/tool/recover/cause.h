/* What ended a process, where the kernel has said so. */
#ifndef GT_CAUSE_H
#define GT_CAUSE_H

#include "encoder/live.h"

/* Says it on standard error; nothing where it is not certain. */
void gt_cause_say(const struct gt_live *live);

#endif
