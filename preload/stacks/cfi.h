/*
 * Call frame information (.eh_frame): how the frame of the code at an address is laid out, and so
 * where its caller's registers are. Reads nothing outside the object that it is given, whatever the
 * bytes say. Takes no lock and no memory; no loop is longer than the tables. Any context.
 *
 * A layout expresses only frames that compilers make in the middle of a call. Any other frame is
 * GT_FRAME_ODD, and its stack ends there.
 */
#pragma once

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
    uint32_t ra_words; /* the return address is so many words below the CFA; 0: in its register */
    uint32_t fp_words; /* the caller's fp is so many words below the CFA; 0: it still is in fp */
    int32_t cfa;       /* in words */
};

/*
 * Limits of a layout, so that it fits a word (code_layouts.h):
 * - -MAX <= cfa < MAX, in steps of GT_ARCH_STACK_ALIGN.
 * - If frames differ in where the return address is, it is within GT_LAYOUT_RA_MAX words of one end
 *   of the frame.
 * - The caller's fp is within GT_LAYOUT_FP_MAX words below the return address.
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
 * The layout at `pc`, which is the address of an interrupted instruction, or a return address less
 * one (a call may be the last instruction of its function).
 */
struct gt_layout gt_cfi_layout(const struct gt_cfi_object *object, uintptr_t pc);
