/*
 * The drain side's half of a switch: it announces a generation and moves the writers there that
 * their owners have not moved (move.h). For one thread at a time.
 */
#pragma once

#include "writer.h"

/* Registers with membarrier(2), or makes writers fence. Before recording; after a fork, too. */
void gt_switch_init(void);

/* Takes the statuses of a thread, batch->m, for generation gen. `batch` is valid until it returns.
 */
typedef void gt_switch_emit_fn(uint32_t gen, const struct gt_buf *batch);

/*
 * Announces generation `next` (0: recording ends) and moves every writer there. Afterwards no
 * thread writes into the old one, and all its buffers are queued. `emit` gets the statuses of
 * writers that their owners did not move, a batch each, of generation `told`. They belong into the
 * file before any buffer of that generation. told is `next`; if nothing is written in `next`, it is
 * the generation with which the file ends. 0: no statuses.
 */
void gt_switch_all(uint32_t next, uint32_t told, gt_switch_emit_fn *emit);

/*
 * When gt_switch_all gives up the writers that are inside, by CLOCK_MONOTONIC. 0: never. The switch
 * may run on a thread of the program's, and they may wait for that very thread.
 */
void gt_switch_set_deadline(uint64_t ns);

/*
 * Whether `inside` has seen every thread outside of our code since `mark` changed last. A thread
 * that may have jumped is not waited for: see gt_era_pin_all.
 */
bool gt_switch_all_outside(uint32_t mark, bool (*inside)(const struct gt_writer *w));

/*
 * Called before a generation ends: the last moment to write for threads that cannot write
 * themselves. NULL: there are none.
 */
extern void (*gt_switch_before)(void);

/* Calls fn for every writer that there ever was; its thread may have ended. */
void gt_switch_each(void (*fn)(void *arg, struct gt_writer *w), void *arg);

/* Events written by all writers so far. */
uint64_t gt_switch_events(void);

void gt_switch_after_fork(void);
