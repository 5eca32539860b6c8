/* What a flight recorder has left in its black box. */
#ifndef GT_RECOVER_KEPT_H
#define GT_RECOVER_KEPT_H

#include "boxed.h"

#include "encoder/ring.h"

/*
 * Calls fn for each generation that it kept, oldest first, as a copy that is this process's; sum:
 * what they have is added. The number of the last one; 0: there is none.
 */
uint32_t gt_kept_recover(const struct gt_boxed *b, void (*fn)(const struct gt_kept *k),
                         struct gt_boxed_sum *sum);

#endif
