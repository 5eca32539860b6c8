/* Finds thread pools whose workers all wait for tasks in their own queue. */
#pragma once

#include "still.h"

/*
 * Adds a deadlock of kind "pool" with those workers, if there are any. Needs the waits of all
 * threads.
 */
void gt_find_pools(struct gt_still *still);
