/*
 * Call frame information (.eh_frame): how the frame of the code at one address is laid out, and so
 * where its caller's registers are. Reads nothing outside the object it is given, whatever the
 * bytes say; no lock, no memory, no loop longer than the tables. Any context.
 *
 * Only layouts that compilers give to a frame in the middle of a call are expressed; the rest is
 * GT_FRAME_ODD, and its stack ends there.
 */
#ifndef GT_CFI_H
#define GT_CFI_H

#include "encoder/base/arch/arch.h"

#include <stdint.h>

/* How the caller's stack pointer (CFA) is found. */
enum gt_frame_kind {
    GT_FRAME_EMPTY,     /* not a layout: an empty slot of a cache */
    GT_FRAME_SP,        /* sp + cfa words */
    GT_FRAME_FP,        /* fp + cfa words */
    GT_FRAME_REALIGNED, /* the word at fp + cfa words; the caller's fp at fp */
    GT_FRAME_SIGNAL,    /* a signal's trampoline: all registers in the context at sp */
    GT_FRAME_OUTERMOST, /* it has no caller */
    GT_FRAME_UNKNOWN,   /* no information: the frame pointer is worth a guess */
    GT_FRAME_ODD,       /* not expressible here */
};

struct gt_layout {
    uint8_t kind;      /* enum gt_frame_kind */
    uint32_t ra_words; /* so many words below the CFA is the return address; 0: in its register */
    uint32_t fp_words; /* the same of the caller's fp; 0: it still is in fp */
    int32_t cfa;       /* in words */
};

/*
 * What is expressed, so that a layout fits a word (layouts.h): -MAX <= cfa < MAX, in steps of
 * GT_ARCH_STACK_ALIGN; where the return address is not in the same place of all frames, that is
 * near one end; the caller's fp is at most so many words below.
 */
#define GT_LAYOUT_CFA_BITS (GT_ARCH_RA_BELOW ? 20 : 16)
#define GT_LAYOUT_CFA_MAX (1 << (GT_LAYOUT_CFA_BITS + GT_ARCH_STACK_ALIGN - 4))
#define GT_LAYOUT_RA_MAX 31
#define GT_LAYOUT_FP_MAX 63

/* A loaded object: [lo, hi) can be read, and `hdr` in it is where .eh_frame_hdr begins. */
struct gt_cfi_object {
    const uint8_t *lo, *hi, *hdr;
};

/*
 * The layout at `pc`: an interrupted instruction's address, or a return address less one (a call
 * may be the last instruction of its function).
 */
struct gt_layout gt_cfi_layout(const struct gt_cfi_object *object, uintptr_t pc);

#endif
