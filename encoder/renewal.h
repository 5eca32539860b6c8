/*
 * When an era (era.h) begins, and when what is older is given back. Drain side only.
 *
 * WHO HAS SOMETHING OF AN ERA. A thread, while it is inside, that is between the two ends of the
 * guard in a hook: what it found in a table. A thread's state (struct gt_g, the label), for as long
 * as a wait or the thread may last. The last stacks of a thread, by which it saves itself looking
 * them up; they are of an epoch, and a new one begins with each era, so that they are forgotten.
 * CPU samples that wait to be written. Generations that the flight recorder keeps.
 *
 * So in the order of generations' ends:
 *
 *  1. The era has grown to its share: the next one begins; then all writers move to the next
 *     generation, and who moves a writer renews what its state refers to (gt_ev_renew_locked).
 *     From here on nothing of the old era is found any more.
 *  2. All threads were seen outside since: none will put anything of it into a state any more.
 *     With the next generation states are renewed once more; nothing of it is in one then.
 *  3. All threads were seen outside since: nobody has anything of it but the flight recorder, and
 *     the generation that ends now. When that is written, it is used up.
 *
 * What a thread finds is ordered against 1, and its coming inside against 2 and 3, by the
 * membarrier(2) of the switch between. Where that does not exist: looking comes a generation after
 * what it is about, and no store takes so long to be seen.
 *
 * A thread that is stopped inside delays all this, for as long as it is: then the newest era grows
 * on, to four times its share, and stacks beyond are lost and counted. One that may have jumped out
 * of our code is not waited for: the eras that there are when that is noticed stay for ever.
 */
#ifndef GT_RENEWAL_H
#define GT_RENEWAL_H

#include "drain.h"

/* config->memory to ->forget say how; nothing is renewed without. */
void gt_renewal_init(const struct gt_drain_config *config);

/* When a generation should end for it, by gt_clock_monotonic_raw; 0: it need not. */
uint64_t gt_renewal_due_ns(void);

/* Whether that will soon be. Any thread. */
bool gt_renewal_is_under_way(void);

/* All writers are about to move to the next generation, which is not the last one. */
void gt_renewal_before_switch(void);

/* They have, and the generation is written, or kept. kept_from: the first era of those kept. */
void gt_renewal_after_generation(uint32_t kept_from);

void gt_renewal_after_fork(void);

#endif
