/* Chooses a thread of a process to borrow, by its stack, which shows what locks it may hold. */
#pragma once

#include "scripts/tool/stacks/still.h"

/*
 * Lists the threads that wait in a system call made from ordinary code, the best first; returns how
 * many. Their stacks are known to the bottom, and no frame is in the loader, an allocator, or a
 * function that makes or ends threads or processes. So they hold none of the locks that making a
 * thread needs. own_malloc: an allocator is linked into the program, so some of its functions may
 * have no names. Needs the threads' stacks.
 */
size_t gt_choose(const struct gt_still *still, bool own_malloc, const struct gt_still_thread **out);

/* Whether the thread, with these registers now, is in the call it was seen in, or a like one. */
bool gt_choose_is_there(const struct gt_still *still, const struct gt_still_thread *task,
                        const struct user_regs_struct *registers);

/* As gt_choose_is_there, from /proc, without a stop of the thread; true if /proc does not say. */
bool gt_choose_may_be_there(const struct gt_still *still, const struct gt_still_thread *task);

/* Whether the thread has the same callers as when it was seen, by its stack memory. */
bool gt_choose_again(const struct gt_still *still, const struct gt_still_thread *task, int memory);

/* The copied part of a thread's stack, or NULL; whether a word is a frame's return address. */
const struct gt_memory_piece *gt_choose_stack(const struct gt_still *still,
                                              const struct gt_still_thread *task);
bool gt_choose_returns(const struct gt_still_thread *task, uint64_t word);

/* Whether a thread executes code there, or will return to it. */
bool gt_choose_is_in_use(const struct gt_still *still, uint64_t code, size_t size);
