/*
 * Locks that other processes hold, or that the kernel knows by process only: locks on files (flock,
 * fcntl, lockf), and mutexes that processes share.
 */
#pragma once

#include "still.h"

/*
 * Finds which process holds what the thread waits for, and whether that process waits for a thread
 * of this one. Needs the waits of all threads, with the owners of their mutexes.
 */
void gt_find_elsewhere(const struct gt_still *still, struct gt_still_thread *task);

/*
 * Forgets what was read for gt_find_elsewhere. Call it before the waits of a picture: what the
 * kernel lists is read once for all of them.
 */
void gt_elsewhere_forget(void);
