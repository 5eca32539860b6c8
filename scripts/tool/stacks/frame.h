/* The frame pointer of a thread that was not stopped, for unwinding.c. */
#ifndef GT_FRAME_H
#define GT_FRAME_H

#include "still.h"

#include "symbolize/elfutils.h"

/*
 * Within gt_elfutils_enter: the frame pointer in the outermost of the task's frames so far, which
 * has one and whose caller nothing tells without it. 0: it has none, or nothing is certain.
 */
uint64_t gt_frame_pointer(const struct gt_elfutils *dw, Dwfl *dwfl, const struct gt_still *still,
                          const struct gt_task *task);

#endif
