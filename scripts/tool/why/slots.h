/*
 * Semaphores, and counters with condition variables, that let so many threads in at a time: who
 * waits for one goes on when another gives up what it has had itself. One that lets in a single one
 * is a lock.
 */
#ifndef GT_WHY_SLOTS_H
#define GT_WHY_SLOTS_H

#include "program.h"

/* By lock: how many slots it has, 0: it is none of these. Of a program that has its edges. */
uint32_t *gt_slots_find(const struct gt_program *program);

#endif
