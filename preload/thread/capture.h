/*
 * Call stacks, by our own walker (unwind.h).
 */
#pragma once

#include "thread.h"

#include "encoder/thread/stacks.h"
#include "preload/shared/leaves.h"

/*
 * Once, in the constructor. If stacks cannot be walked they are only the leaf, and stderr says so.
 */
void gt_capture_init(void);

/*
 * The stack of t's thread, the caller: `hook` as the leaf, then the program's frames without ours,
 * at most GT_FRAMES_MAX. NULL when memory is exhausted. Inside the guard only; may be called in
 * signal handlers. Needs 1.5 KiB of stack, 4 KiB in a thread that runs Python.
 */
struct gt_stack *gt_capture(struct gt_thread *t, enum gt_hook hook);

/*
 * As gt_capture, for a hook that is called inside a library's function which the program has
 * called. Leaves out the frames inner to the one with the return address `from`. If there is no
 * such frame, because the function that `from` is in has just returned, `from` stands before all
 * other frames. from NULL: as gt_capture. GT_NOWHERE: only the leaf.
 */
#define GT_NOWHERE ((const void *)UINTPTR_MAX)
/* `from` is not NULL. */
struct gt_stack *gt_capture_from_slow(struct gt_thread *t, enum gt_hook hook, const void *from);

static inline struct gt_stack *gt_capture_from(struct gt_thread *t, enum gt_hook hook,
                                               const void *from)
{
    return from ? gt_capture_from_slow(t, hook, from) : gt_capture(t, hook);
}

/* A function's frame, as its frame pointer tells, and an address in that function. */
struct gt_here {
    const uintptr_t *frame;
    uintptr_t within;
};
#define GT_HERE()                                          \
    ((struct gt_here){.frame = __builtin_frame_address(0), \
                      .within = gt_arch_within(__builtin_frame_address(0))})

/*
 * Notes where t's thread, the caller, is: in that hook, whose frame lasts as long as the call. Most
 * calls into the kernel are short, and their stacks are never needed. If one is, gt_call_stack
 * finds the stack that gt_capture would find now. If a jump that we did not see has left the hook,
 * gt_call_stack finds only the leaf and where the thread began. false: the stack cannot be found
 * safely later, and must be taken now.
 */
bool gt_capture_later(struct gt_thread *t, enum gt_hook hook, struct gt_here here);

/*
 * t's thread, the caller, is about to leave that hook or has left it, and could not withdraw the
 * call. After this no thread looks at the caller's stack for that call. Waits for a thread that
 * looks at it now, which takes one walk. Any context; errno is kept.
 */
void gt_capture_close(struct gt_thread *t);

/* As gt_capture, without a leaf of ours: the innermost frame is where the program called us. */
struct gt_stack *gt_capture_caller(struct gt_thread *t);

/*
 * Python's state of t's thread, the caller; 0: Python does not know the thread, or there is no
 * Python.
 */
uintptr_t gt_capture_python(struct gt_thread *t);

/* Whether the walker of unwind.h works here. */
bool gt_capture_walks(void);

/*
 * As gt_unwind_context, into pcs, with the functions of Python. native and sp: scratch room for as
 * many frames. Any context.
 */
uint32_t gt_capture_interrupted(const struct gt_thread *t, uint32_t epoch, const void *context,
                                uint64_t *pcs, uint64_t *native, uintptr_t *sp);

/*
 * Whether t's thread, the caller, is known to run in a signal handler, which may have interrupted
 * any code.
 */
bool gt_capture_in_handler(struct gt_thread *t);

/* The stack of a routine about to run: only its entry. */
struct gt_stack *gt_capture_routine(const void *entry);

/* The outermost function of t's thread, the caller. For threads whose creation was not seen. */
struct gt_stack *gt_capture_bottom(struct gt_thread *t);
