/*
 * Walking the calling thread's stack by call frame information. Layouts are remembered for all
 * threads (code_layouts.h), the last stacks for each thread.
 *
 * WHAT MAY BE READ. Frame addresses only grow, so a walk reads between the stack pointer and the
 * end of the stack. That end is known for the main thread, and for threads whose creation was seen.
 * On any other stack (a signal's, a coroutine's, an early thread's) each walk asks the kernel for
 * every page above the first whether it can be read. The answer can be wrong only if another thread
 * unmaps memory above a live stack at this very moment. Only wrong call frame information leads a
 * walk there.
 */
#pragma once

#include "encoder/base/arch/arch.h"
#include "encoder/base/fetch.h"
#include "encoder/format/format.h"
#include "encoder/thread/stacks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_TRAIL_MAX (GT_FRAMES_MAX - 1) /* one frame is the hook, the leaf */

/* A frame: the registers when the function that it called returns. */
struct gt_step {
    uintptr_t sp, fp;
    uintptr_t fp_at;   /* where the walk read fp; &fp where fp makes no difference */
    uintptr_t fp_mask; /* all ones where fp makes a difference to what lies further out */
    uint64_t hash;     /* of the program's pcs from here outward, see gt_hash_mix */
    uint32_t ra_below; /* the walk read the pc so many bytes below sp */
    bool ours;         /* frames of ours are among them: a callback's callers */
};

/*
 * A stack that was walked. Index GT_TRAIL_MAX - 1 is the outermost frame, so inner frames can
 * change without moving the others. pcs[i + 1] belongs to step[i]. Most stacks are not deep: the
 * elements in use lie together, at the arrays' ends.
 */
struct gt_path {
    struct gt_step step[GT_TRAIL_MAX];
    uint64_t pcs[GT_TRAIL_MAX + 1];
    uint32_t frames;
    uint32_t epoch; /* of the module map, when it was walked */
    bool cut;       /* the stack had more frames */
    uint32_t leaf;  /* capture.c's, as `stack`: what it made of the path last */
    struct gt_stack *stack;
};

/*
 * A thread's last two stacks, as a thread often alternates between waiting for work and handing it
 * on; and room for the next. path[1] is used first. If it has up to 30 frames, its end and what
 * follows are in one page.
 */
struct gt_trail {
    _Alignas(4096) struct gt_path path[2];
    uintptr_t stack_lo, stack_hi; /* the thread's own stack; both 0: not known */
    uint32_t last;                /* which of the two is the last stack */
    uint32_t used;                /* how many of the two hold a stack */
    /* The walk under way, innermost first; fresh_pcs[i + 1] belongs to fresh[i]. */
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

/*
 * Prefetches what a walk touches first: the paths' outermost frames, and which path was the last.
 */
static inline void gt_trail_fetch(const struct gt_trail *t)
{
    enum { FEW = 4 };
    gt_fetch(&t->stack_lo,
             offsetof(struct gt_trail, fresh_pcs) - offsetof(struct gt_trail, stack_lo));
    for (uint32_t i = 0; i < t->used; i++) {
        const struct gt_path *p = &t->path[(t->last + i) % 2];
        gt_fetch(&p->step[GT_TRAIL_MAX - FEW], FEW * sizeof *p->step);
        gt_fetch(&p->pcs[GT_TRAIL_MAX + 1 - FEW], FEW * sizeof *p->pcs);
        gt_fetch(&p->frames, sizeof *p - offsetof(struct gt_path, frames));
    }
}

/*
 * The program's pcs in the last path, valid until the next walk; there is room for one before them.
 */
uint64_t *gt_trail_pcs(struct gt_trail *t, uint32_t *n);

/* Copies those pcs, and where their frames begin. Returns how many. */
uint32_t gt_trail_frames(struct gt_trail *t, uint64_t *pcs, uintptr_t *sp);

/*
 * In the constructor. Our own code is [start, end), and keeps frame pointers. false: stacks cannot
 * be walked.
 */
bool gt_unwind_init(uintptr_t start, uintptr_t end);

/* The thread of this trail starts, and calls this on its stack of `size` bytes (0: not known). */
void gt_trail_begin(struct gt_trail *t, size_t size);

enum gt_walked {
    GT_WALK_SAME,  /* the last path is the stack, and was before */
    GT_WALK_TRAIL, /* the last path is the stack now */
    GT_WALK_FRESH, /* the stack is in `fresh`: *n pcs */
    GT_WALK_ODD,   /* as FRESH, but the next frame cannot be followed */
};

/*
 * Walks the calling thread's stack: the program's frames, none of ours. Inside the guard; any
 * context after init. Needs 0.5 KiB of stack, 1.3 KiB where a layout is not known yet. errno may
 * change.
 */
enum gt_walked gt_unwind(struct gt_trail *t, uint32_t epoch, uint32_t *n);

/*
 * Whether the caller runs in a signal handler, as far as its stack can be followed. Context as
 * gt_unwind.
 */
bool gt_unwind_meets_signal(const struct gt_trail *t, uint32_t epoch);

/*
 * The stack that a signal handler, the caller, has interrupted. Any context after init, also the
 * middle of gt_unwind. errno may change.
 *
 * - context: the handler's ucontext_t.
 * - pcs: the interrupted instruction, then return addresses, only the program's, at most
 *   GT_FRAMES_MAX. If our own code was interrupted, they begin with its caller.
 * - sp: where each frame begins; may be NULL.
 */
uint32_t gt_unwind_context(const struct gt_trail *t, uint32_t epoch, const void *context,
                           uint64_t *pcs, uintptr_t *sp);

/*
 * As gt_unwind_context, for another moment or thread: from these registers (pc 0: not known), with
 * a copy of the stack from registers.sp on. *cut: the copy may have ended too early. Only while no
 * code is unloaded.
 */
uint32_t gt_unwind_copy(const struct gt_arch_registers *registers, const void *copy, size_t size,
                        uint32_t epoch, uint64_t *pcs, bool *cut);

/*
 * The stack of a hook that is under way in the thread of this trail, which is the caller or stands
 * still in the hook. Any context after init, also the middle of gt_unwind. errno may change.
 *
 * - frame: what __builtin_frame_address(0) is in the hook; within: an address in the hook, where it
 *   has that frame.
 * - pcs: the program's return addresses, from the hook's caller outward, at most GT_TRAIL_MAX.
 * - sp: where each frame begins; may be NULL.
 */
uint32_t gt_unwind_hook(const struct gt_trail *t, uint32_t epoch, const uintptr_t *frame,
                        uintptr_t within, uint64_t *pcs, uintptr_t *sp);

/* Whether the address is on the thread's own stack, which stays mapped while the thread lives. */
static inline bool gt_trail_covers(const struct gt_trail *t, uintptr_t address)
{
    return address - t->stack_lo < t->stack_hi - t->stack_lo;
}

/* The hash of the path's pcs, for gt_stacks_get_hashed. */
static inline uint64_t gt_path_hash(const struct gt_path *p)
{
    return p->frames ? p->step[gt_path_first(p)].hash : GT_STACKS_SEED;
}
