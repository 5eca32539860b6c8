/* What threads have used, as the kernel tells it: for the encoder's account. */
#ifndef GT_USAGE_READ_H
#define GT_USAGE_READ_H

#include "encoder/sched.h"
#include "encoder/usage.h"

/* See gt_usage_fn. With a tid: drain side, or while there is one thread. Without: any thread. */
bool gt_usage_read(uint32_t tid, unsigned wanted, struct gt_usage *usage);

/* How often the caller has given up a CPU by itself; UINT64_MAX: not known. Any thread. */
uint64_t gt_usage_own_waits(void);

/* See gt_where_fn. Drain side. */
bool gt_usage_where(uint32_t tid, struct gt_where_now *where);

/* The drain thread, which is to call gt_usage_read from now on, has descriptors of its own. */
void gt_usage_apart(void);
bool gt_usage_is_apart(void);

/*
 * A file of /proc about a thread, as a text; how much of it, 0: it cannot be read. As gt_usage_read
 * with a tid.
 */
size_t gt_usage_read_file(char *text, size_t size, uint32_t tid, const char *name);

/* From here on no clock of a thread is read (seccomp.c). Any thread. */
void gt_usage_forbid(void);

/* In a forked child, which has no such thread. */
void gt_usage_after_fork(void);

#endif
