/*
 * Threads to which the program has given a real-time priority: none that is less urgent runs as
 * long as they do. One that slept in a hook would let those run; and if it is one of those that it
 * waits for, or the drain thread, that may last for ever.
 *
 * So such a thread does not sleep in a hook. It waits for a moment, awake, and meanwhile the drain
 * thread, if that is what it waits for, is more urgent than it. Then it does without, and what it
 * would have written is lost, which is counted. It sleeps, after that moment, only where it cannot
 * do without, as it begins and ends.
 */
#ifndef GT_URGENT_H
#define GT_URGENT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the calling thread is one of them. A system call, so only where it would have to wait. */
bool gt_urgent(void);

/* From here on nobody is, for nobody may ask (seccomp.c). */
void gt_urgent_forbid(void);

/* Makes the drain thread the more urgent one, if it is at what threads may have to wait for. */
void gt_urgent_lend(void);

/* The same whatever that is at, should the caller be urgent: as the process ends, which waits. */
void gt_urgent_hasten(void);

/* The drain thread: where it begins and ends, where it is at that, and where it has time. */
void gt_urgent_helper(uint32_t tid);
void gt_urgent_working(bool working);
void gt_urgent_give_back(void);

#endif
