/*
 * Moves one writer to the next generation (writer.h, rules 1 and 2). The writer's owner calls
 * gt_move_self. The drain side moves the writer of a silent thread by the other functions
 * (switch.c).
 */
#pragma once

#include "writer.h"

/*
 * By the owner, not busy. Afterwards w is in a newer generation, or the drain side, which was
 * switching it, is done. false: no memory for a buffer, or a thread that does not go on holds what
 * the owner needs (GT_LOCK_PATIENCE_NS).
 */
bool gt_move_self(struct gt_writer *w);

/* Makes the caller w's switcher. false: it is not. Full barrier: see claim_and_move_locked. */
bool gt_move_claim(struct gt_writer *w, uint32_t gen);

/*
 * By w's switcher: writes the old generation's last events. The caller keeps the lock until the
 * status in the next generation stands: an unblocker that is still in the old one must not come
 * between (rule 4).
 */
void gt_move_end_locked(struct gt_writer *w, uint32_t old);

/* Ends a switch. release: a thread that sees the number sees the writer as the switcher left it. */
void gt_move_settle(struct gt_writer *w, uint32_t gen);

/* Sleeps while the switch seen as `gen` is under way, timeout_ns at most; -1: no limit. */
void gt_move_wait(struct gt_writer *w, uint32_t gen, int64_t timeout_ns);
