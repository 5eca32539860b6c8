/* Which thread of a process can be borrowed: its stack says what it holds. */
#ifndef GT_CHOOSE_H
#define GT_CHOOSE_H

#include "scripts/tool/stacks/still.h"

/*
 * Threads that sit in a system call, called from ordinary code: on no frame of their stacks, which
 * are known to the bottom, are they inside of the loader, an allocator or what makes or ends
 * threads and processes; so they hold none of the locks that making a thread takes. own_malloc:
 * an allocator is linked into the program, where not all of its functions may have names. The best
 * first; how many. Needs their stacks.
 */
size_t gt_choose(const struct gt_still *still, bool own_malloc, const struct gt_task **out);

/* Whether a thread with these registers is in the same call, or in one that is made there, too. */
bool gt_choose_is_there(const struct gt_still *still, const struct gt_task *task,
                        const struct user_regs_struct *registers);

/* The same of one that runs on, which is not disturbed; where /proc does not tell, true. */
bool gt_choose_may_be_there(const struct gt_still *still, const struct gt_task *task);

/* Whether it has come there by the same way, by its memory. */
bool gt_choose_again(const struct gt_still *still, const struct gt_task *task, int memory);

/* A thread's stack, as far as it was copied, or NULL; whether a word there is one of its frames'
 * return addresses. */
const struct gt_piece *gt_choose_stack(const struct gt_still *still, const struct gt_task *task);
bool gt_choose_returns(const struct gt_task *task, uint64_t word);

/* Whether a thread executes code there, or will come back to it. */
bool gt_choose_is_in_use(const struct gt_still *still, uint64_t code, size_t size);

#endif
