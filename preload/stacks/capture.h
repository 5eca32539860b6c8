/*
 * Call stacks, by our own walker (unwind.h).
 */
#ifndef GT_CAPTURE_H
#define GT_CAPTURE_H

#include "encoder/stacks.h"
#include "preload/real.h"
#include "preload/thread.h"

/* Once, in the constructor. Without memory stacks are just the leaf; says so on stderr. */
void gt_capture_init(void);

/*
 * The stack of t's thread, which calls: leaf = `hook`, then the program's frames, none of ours, at
 * most GT_FRAMES_MAX. NULL when memory is exhausted. Inside the guard only; may be called in signal
 * handlers. Needs 1.5 KiB of stack, in a thread of Python's 4.
 */
struct gt_stack *gt_capture(struct gt_thread *t, enum gt_hook hook);

/*
 * The same, where the program has called a library's function of which ours is called: of the
 * frames inner to the one with the return address `from` none. Where there is no such frame, since
 * the function that `from` is in has just returned, it stands before all others. NULL: as
 * gt_capture. GT_NOWHERE: just the leaf.
 */
#define GT_NOWHERE ((const void *)UINTPTR_MAX)
struct gt_stack *gt_capture_from(struct gt_thread *t, enum gt_hook hook, const void *from);

/* A function's frame, which its frame pointer tells, and an address in that function. */
struct gt_here {
    const uintptr_t *frame;
    uintptr_t within;
};
#define GT_HERE()                                          \
    ((struct gt_here){.frame = __builtin_frame_address(0), \
                      .within = gt_arch_within(__builtin_frame_address(0))})

/*
 * Most calls into the kernel are short, and nobody asks for their stacks. Notes where t's thread,
 * which calls, is: in that hook, whose frame lasts as long as the call. gt_call_stack finds the
 * same stack there as gt_capture here; but where the hook was left by a jump of which we were not
 * told, just the leaf and where the thread began. false: that is not safe there, the stack is to be
 * taken now.
 */
bool gt_capture_later(struct gt_thread *t, enum gt_hook hook, struct gt_here here);

/*
 * t's thread, which calls, is about to leave that hook, or has done so, and could not withdraw the
 * call: nobody looks at its stack for that any more. Waits for who does so now, which takes a walk.
 * Any context; errno is kept.
 */
void gt_capture_close(struct gt_thread *t);

/* The same without a leaf of ours: it is where the program called us. */
struct gt_stack *gt_capture_caller(struct gt_thread *t);

/* What Python knows t's thread by, which calls; 0: it does not, or there is no Python. */
uintptr_t gt_capture_python(struct gt_thread *t);

/* Whether the walker of unwind.h works here. */
bool gt_capture_walks(void);

/*
 * As gt_unwind_context, with the functions of Python, into pcs; native and sp: room for as many.
 * Any context.
 */
uint32_t gt_capture_interrupted(const struct gt_thread *t, uint32_t epoch, const void *context,
                                uint64_t *pcs, uint64_t *native, uintptr_t *sp);

/* Whether t's thread, which calls, is known to be in a signal handler, which may be anywhere. */
bool gt_capture_in_handler(struct gt_thread *t);

/* The stack of a routine about to run: just its entry. */
struct gt_stack *gt_capture_routine(const void *entry);

/* The outermost function of t's thread, which calls, for threads whose creation was not seen. */
struct gt_stack *gt_capture_bottom(struct gt_thread *t);

#endif
