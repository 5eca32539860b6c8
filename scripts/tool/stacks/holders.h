/*
 * Finds the holder of what a thread waits for if the lock itself does not name it, but memory
 * beside the lock or the stacks do.
 */
#pragma once

#include "still.h"

/* Looks for the holders of locks of which only stacks know. Call it before gt_find_holder, once. */
void gt_look_for_holders(const struct gt_still *still);

/*
 * Call it after waits.c has found the waits of all threads, and again after gt_find_wait for one
 * thread.
 */
void gt_find_holder(const struct gt_still *still, struct gt_still_thread *task);

/*
 * For a thread that waits for Python's GIL: a number that changes when the GIL gets another owner.
 * 0: it has got one, or is free.
 */
uint64_t gt_gil_turn(const struct gt_still *still, const struct gt_still_thread *task);

/* Where the frame with that index, and all its callers, begin on the stack; 0: not known. */
uint64_t gt_frame_begins(const struct gt_still *still, const struct gt_still_thread *task,
                         size_t frame);

/* Whether the thread belongs to libgotrace. */
bool gt_is_our_thread(const struct gt_still_thread *task);
