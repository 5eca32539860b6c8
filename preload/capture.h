/*
 * Call stacks, by libunwind. It is loaded privately: as a needed library of a preloaded one its
 * _Unwind_* would take over every C++ exception of the program (DESIGN, rule 5).
 */
#ifndef GT_CAPTURE_H
#define GT_CAPTURE_H

#include "../encoder/stacks.h"
#include "real.h"

/* Once, in the constructor. Without libunwind stacks are just the leaf; says so on stderr. */
void gt_capture_init(void);

/*
 * The calling thread's stack: leaf = `hook`, then the program's frames, none of ours, at most
 * GT_FRAMES_MAX. NULL when memory is exhausted. Inside the guard only; may be called in signal
 * handlers; needs about 6 KiB of stack.
 */
struct gt_stack *gt_capture(enum gt_hook hook);

/* The stack of a routine about to run: just its entry. */
struct gt_stack *gt_capture_routine(const void *entry);

/* The outermost function of the calling thread, for threads whose creation was not seen. */
struct gt_stack *gt_capture_bottom(void);

#endif
