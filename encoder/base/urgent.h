/*
 * Urgent threads: those to which the program has given a real-time priority. No less urgent thread
 * runs while they do. If an urgent thread slept in a hook, less urgent threads would run. If it
 * waits for one of them, or for the drain thread, its sleep may last for ever.
 *
 * So an urgent thread does not sleep in a hook. It spins for a moment; if it waits for the drain
 * thread, it makes that more urgent than itself meanwhile. Then it goes on without what it waits
 * for. The events that it would have written are lost and counted. Only at its beginning and end,
 * where it cannot do without, the thread sleeps after that moment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether the calling thread is urgent. Makes a system call: ask only before a wait. */
bool gt_urgent(void);

/* From here on no thread is urgent: a filter forbids the system calls that tell (seccomp.c). */
void gt_urgent_forbid(void);

/* Makes the drain thread more urgent than the caller, if it does work that threads may wait for. */
void gt_urgent_lend(void);

/*
 * Makes the drain thread more urgent whatever it does, if the caller is urgent. For the end of the
 * process, which waits for the drain thread.
 */
void gt_urgent_hasten(void);

/*
 * For the drain side: the drain thread begins (0: has ended). It begins or ends work that threads
 * may wait for. It has time to give a lent priority back.
 */
void gt_urgent_helper(uint32_t tid);
void gt_urgent_working(bool working);
void gt_urgent_give_back(void);
