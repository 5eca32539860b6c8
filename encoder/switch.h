/*
 * Moving writers from one generation to the next: rules 1 and 2 of writer.h. The drain side's half
 * (gt_switch_begin, gt_switch_all) is for one thread at a time.
 */
#ifndef GT_SWITCH_H
#define GT_SWITCH_H

#include "writer.h"

/* Registers with membarrier(2), or makes writers fence. Before recording; in a forked child, too.
 */
void gt_switch_init(void);

/*
 * Announces generation `next` (0: recording ends) and moves every writer there. Afterwards nobody
 * writes the old one any more and all its buffers are queued. The statuses of writers that did not
 * move by themselves are given to `emit`, a batch each, of generation `told`; they belong into the
 * file before any buffer of that. told: `next`; or where nothing is written in that, the one with
 * which the file ends; 0: no statuses.
 */
void gt_switch_all(uint32_t next, uint32_t told, void (*emit)(struct gt_buf *batch));

/*
 * When gt_switch_all has waited long enough for writers that are inside, by CLOCK_MONOTONIC: they
 * are given up. 0: never. A thread of the program's that switches may be what they wait for.
 */
void gt_switch_set_deadline(uint64_t ns);

/*
 * Whether every thread was seen outside of our code, by `inside`, since `mark` changed last. One
 * that may have jumped is not waited for: see gt_era_pin_all.
 */
bool gt_switch_all_outside(uint32_t mark, bool (*inside)(const struct gt_writer *w));

/*
 * Called before a generation ends: the last moment to write of those who cannot do so themselves.
 * NULL: there are none.
 */
extern void (*gt_switch_before)(void);

/* Every writer that there ever was; its thread may have ended. */
void gt_switch_each(void (*fn)(void *arg, struct gt_writer *w), void *arg);

/* Events written by all writers so far. */
uint64_t gt_switch_events(void);

void gt_switch_after_fork(void);

#endif
