/* What threads have used, as the kernel tells it: for the encoder's account. */
#ifndef GT_USAGE_READ_H
#define GT_USAGE_READ_H

#include "encoder/usage.h"

/* See gt_usage_fn. With a tid: drain side only. Without: any thread, of itself. */
bool gt_usage_read(uint32_t tid, unsigned wanted, struct gt_usage *usage);

/* The drain thread, which is to call gt_usage_read from now on, has descriptors of its own. */
void gt_usage_apart(void);

/* From here on no thread asks of itself (seccomp.c). Any thread. */
void gt_usage_forbid_own(void);

/* In a forked child, which has no such thread. */
void gt_usage_after_fork(void);

#endif
