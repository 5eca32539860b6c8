/*
 * When an era (era.h) begins, and when the memory of an older one is given back. Drain side only.
 *
 * WHO REFERS TO ENTRIES OF AN ERA, that is, to its stacks and strings.
 * - A thread while it is inside, that is, in a hook between the two ends of the guard: entries
 *   that it found in a table.
 * - A thread's state (struct gt_g, the label), for as long as a wait or the thread may last.
 * - The last stacks of a thread, which save it a look-up. They are of an epoch, and each era
 *   begins with a new epoch, so the thread forgets them.
 * - CPU samples that wait to be written.
 * - Generations that the flight recorder keeps.
 *
 * So an era is given back in three steps, each at the end of a generation:
 *
 *  1. The era has grown to its share: the next era begins. Then all writers move to the next
 *     generation, and the thread that moves a writer renews the entries that its state refers to
 *     (renew_locked of states.c). From here on no entry of the old era is found any more.
 *  2. Since step 1 all threads were seen outside: no thread will put an old entry into a state any
 *     more. With the next generation states are renewed once more; then no state refers to the old
 *     era.
 *  3. Since step 2 all threads were seen outside: only the flight recorder and the generation that
 *     ends now refer to the old era. When that generation is written, the era is used up.
 *
 * The membarrier(2) of the switch in between orders a thread's look-up against step 1, and its
 * entering a hook against steps 2 and 3. Without membarrier(2) time must do: threads are looked at
 * a generation later than the change, and no store takes so long to be seen.
 *
 * A thread that is stopped inside delays all this. Meanwhile the newest era grows on, to four
 * times its share; stacks beyond that are lost and counted. A thread that may have jumped out of
 * our code is not waited for: the eras that exist when that is noticed stay for ever.
 */
#pragma once

#include "drain_config.h"

/*
 * config->renewal says how, if at all. need: see gt_recording_init.
 */
void gt_renewal_init(const struct gt_drain_config *config, void (*need)(void));

/* When a generation should end for a renewal, by gt_clock_monotonic_raw; 0: none is needed. */
uint64_t gt_renewal_due_ns(void);

/* Whether a renewal is under way or needed. Any thread. */
bool gt_renewal_is_under_way(void);

/* All writers are about to move to the next generation, which is not the last one. */
void gt_renewal_before_switch(void);

/*
 * All writers have moved, and the generation is written or kept. kept_from: the oldest era of all
 * kept generations.
 */
void gt_renewal_after_generation(uint32_t kept_from);

void gt_renewal_after_fork(void);
