/*
 * Finds semaphores, and counters guarded by a condition variable, that admit a fixed number of
 * threads at a time. A waiter goes on when another thread gives back the slot that it got earlier.
 * A semaphore with one slot is a lock.
 */
#pragma once

#include "program.h"

/*
 * By lock: the number of slots, or 0 if it is no such semaphore. The program must have its edges.
 */
uint32_t *gt_slots_find(const struct gt_program *program);
