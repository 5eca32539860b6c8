/*
 * Copies of threads' stacks, which the kernel makes for us (perf.h): limits the memory of their
 * rings and walks the copies, but never while the program unloads code.
 */
#pragma once

#include "perf.h"

/*
 * Walks the stack of a sample into pcs, GT_FRAMES_MAX at most, and returns how many frames it
 * found. pcs and *epoch are what gt_stacks_get takes. Without `callers` the walk stops at the
 * interrupted function. *cut: the copy ends before the stack does.
 */
typedef uint32_t gt_walk_fn(const struct gt_perf_sample *sample, bool callers, uint64_t *pcs,
                            uint32_t *epoch, bool *cut);

/* walk: NULL if no copies are wanted. */
void gt_copies_init(gt_walk_fn *walk);
bool gt_copies_are_walked(void);

/*
 * Bytes that one copy takes in its record, from most to least: the more rings there are, the less
 * the kernel copies of each stack. Includes what the record holds beside the stack.
 */
enum { GT_COPY_MOST = 32 << 10, GT_COPY_LEAST = 8 << 10 };

/* The most bytes that another ring should take; and whether a ring of `bytes` still fits. */
size_t gt_copies_share(void);
bool gt_copies_have_room(size_t bytes);

/* A ring of so many bytes was opened; a negative number: it was closed. */
void gt_copies_count(int64_t bytes);

/* See gt_walk_fn. Drain side. */
uint32_t gt_copies_walk(const struct gt_perf_sample *sample, uint64_t *pcs, uint32_t *epoch,
                        bool *cut);

/*
 * hold and go_on enclose an unloading of code. gt_copies_hold first has the drain thread walk the
 * samples that may lie in that code, and waits for it for 0.1 s at most. Until gt_copies_go_on
 * samples have no callers, because no copy is walked. gt_copies_hold also waits for a walk that is
 * under way, 1 s at most. Any thread, not in signal handlers.
 */
void gt_copies_hold(void);
void gt_copies_go_on(void);

/*
 * Requests of gt_copies_hold. Whether a thread waits for the rings to be emptied. The newest
 * request's number. Notes that the drain side has served all requests up to `request`.
 */
bool gt_copies_are_awaited(void);
uint32_t gt_copies_request(void);
void gt_copies_serve(uint32_t request);

/* In a forked child: the rings belong to the parent. */
void gt_copies_after_fork(void);
