/* `gotrace stacks --last=N`: what the flight recorder in a program knows of its threads. */
#ifndef GT_RECENT_H
#define GT_RECENT_H

#include "encoder/read/threads.h"

#include <stdio.h>
#include <sys/types.h>

/* Asks the recorder of the process for all it has; ends with a message if there is none. */
void gt_recent_read(pid_t pid, unsigned last);

/* The same of a black box, for what it says of all threads; last 0: nothing of what was before. */
const struct gt_threads *gt_recent_read_box(const char *path, unsigned last);

/* When a wait for the lock was last over, ns; 0: none was. Of a box. */
uint64_t gt_recent_given_up(const struct gt_lock_state *lock);

/* Since when a thread does what it does, and its last waits and calls; nothing where it is not
 * known. */
void gt_recent_print(FILE *out, pid_t tid);

/* The same as a member of an object; null where it is not known, none where nobody has asked. */
void gt_recent_json(pid_t tid);

#endif
