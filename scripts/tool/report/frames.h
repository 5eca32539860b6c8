/*
 * Whose code a frame of a stack is: the program's own, or what stands between that and a wait. By
 * a table of rules (frame_rules.def), a user's rules, and where the module lies.
 */
#ifndef GT_FRAMES_H
#define GT_FRAMES_H

#include "encoder/read/trace.h"

enum gt_frame_kind {
    GT_FRAME_OWN = 1,       /* the program's, whatever else is said of it */
    GT_FRAME_SKIP = 2,      /* just wraps what is called there */
    GT_FRAME_START = 4,     /* runs the program or a thread */
    GT_FRAME_LIBRARY = 8,   /* of the system: not the program's */
    GT_FRAME_LOOP = 16,     /* an event loop of a library's, which waits for work: no place */
    GT_FRAME_IDLE = 32,     /* what waits in it waits for work */
    GT_FRAME_BUSY = 64,     /* what waits in it never does */
    GT_FRAME_NAMELESS = 128 /* nobody knows what code it is */
};

/* A sum of these kinds. i: of the stack's frames, but for the first, which is the call itself. */
unsigned gt_frame_kinds(const struct gt_callers *stack, uint32_t i);

/* Whether that is the program's own code. */
bool gt_frame_is_own(const struct gt_callers *stack, uint32_t i);

/* The path of the file that the code is of; NULL: the trace does not tell, as of the call itself.
 */
const char *gt_frame_module(const struct gt_callers *stack, uint32_t i);

/* The same of code that the program has made at run time. */
bool gt_frame_is_own_made(const struct gt_callers *stack, uint32_t i);

/* From now on frames are of this trace, and the user's rules count: before any of the above. */
void gt_frames_use(const struct gt_trace *trace);

/* Of all rules, the user's too: another one when any has changed. 63 bits. */
uint64_t gt_frames_fingerprint(void);

/*
 * A rule of the command line: a regular expression for functions; or, for GT_FRAME_SKIP, the name
 * of a module. `option`: what to call it in the message with which a bad one ends the program.
 */
void gt_frames_rule(unsigned kinds, const char *pattern, const char *option);

#endif
