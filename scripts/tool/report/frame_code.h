/*
 * Decides whose code a stack frame is: the program's own, or code that stands between the program
 * and a wait. The decision follows a table of rules (frame_rules.def), the user's rules, and where
 * the module's file lies.
 */
#pragma once

#include "encoder/read/trace.h"

enum {
    GT_FRAME_OWN = 1,        /* the program's own, whatever other rules say */
    GT_FRAME_SKIP = 2,       /* only wraps the call */
    GT_FRAME_START = 4,      /* starts the program or a thread */
    GT_FRAME_LIBRARY = 8,    /* of the system, not the program's */
    GT_FRAME_LOOP = 16,      /* a library's event loop, which waits for work: never a place */
    GT_FRAME_IDLE = 32,      /* waits below it are waits for work */
    GT_FRAME_BUSY = 64,      /* waits below it are never waits for work */
    GT_FRAME_NAMELESS = 128, /* its function's name is not known: "pigz+0x11322" */
    GT_FRAME_UNKNOWN = 256   /* nor is its module: "0x7f12" */
};

/* The kinds of a frame, or-ed. i: index in the stack, from 1 on: frame 0 is the call itself. */
unsigned gt_frame_kinds(const struct gt_callers *stack, uint32_t i);

/* As gt_frame_kinds, but whatever its source file is: a library's header may have templates. */
unsigned gt_frame_kinds_of_name(const struct gt_callers *stack, uint32_t i);

/* Whether the frame is the program's own code. */
bool gt_frame_is_own(const struct gt_callers *stack, uint32_t i);

/*
 * The path of the file with the frame's code. NULL: the trace does not tell, as for the call
 * itself.
 */
const char *gt_frame_module(const struct gt_callers *stack, uint32_t i);

/* Whether the frame is the program's own code, made at run time. */
bool gt_frame_is_own_made(const struct gt_callers *stack, uint32_t i);

/*
 * Whether the frame is the program's own code, with debug information, in a module that an
 * interpreter has loaded as an extension. Extensions of other people come without.
 */
bool gt_frame_is_extension(const struct gt_callers *stack, uint32_t i);

/*
 * Sets the trace that frames belong to, and reads the user's rules. Call it before the functions
 * above.
 */
void gt_frames_use(const struct gt_trace *trace);

/* A fingerprint of all rules, the user's included: it changes with any rule. 63 bits. */
uint64_t gt_frames_fingerprint(void);

/*
 * Adds a rule from the command line: a regular expression for functions or, with GT_FRAME_SKIP,
 * also the name of a module. On a bad pattern it ends the program with a message that names
 * `option`.
 */
void gt_frames_rule(unsigned kinds, const char *pattern, const char *option);
