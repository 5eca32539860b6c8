/*
 * Walking the calling thread's stack by call frame information: layouts are remembered for all
 * threads (layouts.h), the last stacks of each thread for itself.
 *
 * WHAT MAY BE READ. Frame addresses only ever grow, so what is read lies between the stack pointer
 * and the end of the stack. Where that end is, is known for the main thread and for threads whose
 * creation was seen. On any other stack (a signal's, a coroutine's, an early thread's) the kernel
 * is asked for every page above the first whether it can be read, in each walk again: only memory
 * above a live stack that another thread unmaps at this very moment could be missed, and only wrong
 * call frame information would lead there.
 */
#ifndef GT_UNWIND_H
#define GT_UNWIND_H

#include "encoder/base/arch/arch.h"
#include "encoder/format.h"
#include "encoder/stacks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_TRAIL_MAX (GT_FRAMES_MAX - 1) /* the leaf is a hook */

/* A frame: the registers when it goes on. */
struct gt_step {
    uintptr_t sp, fp;
    uintptr_t fp_at;   /* where the walk read fp; itself where fp makes no difference */
    uintptr_t fp_mask; /* all ones where fp makes a difference to what lies further out */
    uint64_t hash;     /* of the program's pcs from here outward, see gt_hash_mix */
    uint32_t ra_below; /* where the walk read the pc: so many bytes below sp, see gt_ra_below */
    bool ours;         /* there are frames of ours among these: a callback's callers */
};

/*
 * A stack that was walked. Index GT_TRAIL_MAX - 1 is the outermost frame, so that frames further in
 * can change without moving the others. pcs[i + 1] belongs to step[i]. Most stacks are not deep:
 * what is used of it lies together, at its end.
 */
struct gt_path {
    struct gt_step step[GT_TRAIL_MAX];
    uint64_t pcs[GT_TRAIL_MAX + 1];
    uint32_t frames;
    uint32_t epoch; /* they are of */
    bool cut;       /* there were more */
    uint32_t leaf;  /* the caller's, as the next: what was made of the path last */
    struct gt_stack *stack;
};

/*
 * A thread's last stacks (two, as it waits for work and hands it on), and room for the next. The
 * second path comes first: its end and what follows, as far as 30 frames go, are in one page.
 */
struct gt_trail {
    _Alignas(4096) struct gt_path path[2];
    uintptr_t stack_lo, stack_hi; /* the thread's own stack; both 0: not known */
    uint32_t last;                /* which of the two was the stack last */
    uint32_t used;                /* so many of them are something */
    /* The walk under way, innermost first; pcs[i + 1] again. */
    uint64_t fresh_pcs[GT_TRAIL_MAX + 1];
    struct gt_fresh {
        uintptr_t sp, fp, fp_at;
        uint32_t ra_below;
        bool uses_fp, saves_fp;
    } fresh[GT_TRAIL_MAX];
};

static inline uint32_t gt_path_first(const struct gt_path *p)
{
    return GT_TRAIL_MAX - p->frames;
}

static inline struct gt_path *gt_trail_last(struct gt_trail *t)
{
    return &t->path[t->last];
}

/* The program's pcs in the last path, until the next walk; there is room for one before them. */
uint64_t *gt_trail_pcs(struct gt_trail *t, uint32_t *n);

/* In the constructor. Our own code is [start, end), and keeps frame pointers. false: there is
 * no memory. */
bool gt_unwind_init(uintptr_t start, uintptr_t end);

/* The thread of this trail starts; `size` of its stack, 0: not known. Called on that stack. */
void gt_trail_begin(struct gt_trail *t, size_t size);

enum gt_walked {
    GT_WALK_SAME,  /* the last path is the stack, and was before */
    GT_WALK_TRAIL, /* the last path is the stack now */
    GT_WALK_FRESH, /* the stack is in `fresh`: *n pcs */
    GT_WALK_ODD,   /* as FRESH, but it goes on with a frame that cannot be followed */
};

/*
 * The program's frames of the calling thread, none of ours. Inside the guard; any context after
 * init; needs 0.5 KiB of stack, 1.3 where a layout is not known yet. errno may change.
 */
enum gt_walked gt_unwind(struct gt_trail *t, uint32_t epoch, uint32_t *n);

/* Whether the caller runs in a signal handler, as far as can be followed. Context as gt_unwind. */
bool gt_unwind_meets_signal(const struct gt_trail *t, uint32_t epoch);

/*
 * The stack of what a signal handler, which calls, has interrupted: into pcs, at most
 * GT_FRAMES_MAX; the interrupted instruction, then return addresses, of the program; where each
 * frame begins into sp, unless that is NULL. Where our own code was interrupted, it begins with its
 * caller. Any context after init, also the middle of
 * gt_unwind. `context`: the handler's, a ucontext_t. errno may change.
 */
uint32_t gt_unwind_context(const struct gt_trail *t, uint32_t epoch, const void *context,
                           uint64_t *pcs, uintptr_t *sp);

/*
 * The same of another moment or thread: from these registers, with a copy of the stack from
 * registers.sp on; pc 0: not known. *cut: the copy may have ended too early. While no code is
 * unloaded.
 */
uint32_t gt_unwind_copy(const struct gt_arch_registers *registers, const void *copy, size_t size,
                        uint32_t epoch, uint64_t *pcs, bool *cut);

/*
 * The stack of a hook that is under way, in the thread of this trail or another one that stands
 * still there: the program's frames, from the hook's caller outward, into pcs, at most
 * GT_TRAIL_MAX; where each frame begins into sp, unless that is NULL. `frame`: what
 * __builtin_frame_address(0) is in the hook; `within`: an address in it, where it has that frame.
 * Any context after init, also the middle of gt_unwind. errno may change.
 */
uint32_t gt_unwind_hook(const struct gt_trail *t, uint32_t epoch, const uintptr_t *frame,
                        uintptr_t within, uint64_t *pcs, uintptr_t *sp);

/* Whether the address is on the thread's own stack, which stays mapped while that lives. */
static inline bool gt_trail_covers(const struct gt_trail *t, uintptr_t address)
{
    return address - t->stack_lo < t->stack_hi - t->stack_lo;
}

/* The hash of these, for gt_stacks_get_hashed. */
static inline uint64_t gt_path_hash(const struct gt_path *p)
{
    return p->frames ? p->step[gt_path_first(p)].hash : GT_STACKS_SEED;
}

#endif
