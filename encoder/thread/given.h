/*
 * Names that threads were given by other threads, until the named threads take them. A thread's
 * label belongs to its goroutine, and only the goroutine's own stream can have it.
 *
 * gt_given_name may run in any thread and in signal handlers, waits for nothing and touches nothing
 * of the named thread, which may not have begun, or have ended. gt_given_take and gt_given_forget
 * are for the named thread, or for its switcher.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GT_GIVEN_NAME = 16 }; /* as long as the kernel's names, with the zero at its end */

/* How many names were given: a thread looks for its own when this has changed. */
extern _Atomic uint32_t gt_given_count;

/* The thread tid has this name from now on; what does not fit is cut. Counts a name that is lost.
 */
void gt_given_name(uint32_t tid, const char *name);

/*
 * Whether the thread tid was given a name that is not the one that *version, 0 to begin with, is
 * of. Sets both if so.
 */
bool gt_given_take(uint32_t tid, uint32_t *version, char name[GT_GIVEN_NAME]);

/* The thread tid ends: the next one of that number has no name yet. */
void gt_given_forget(uint32_t tid);

/* In a forked child: the names of the parent's threads are not those of its own. */
void gt_given_after_fork(void);
