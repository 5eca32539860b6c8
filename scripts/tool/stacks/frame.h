/* Finds the frame pointer of a thread that was not stopped, for unwinding.c. */
#pragma once

#include "still.h"

#include "symbolize/elf/elfutils.h"

/*
 * Call it within gt_elfutils_enter. Returns the frame pointer in the outermost frame of the task
 * that was found so far. Without the frame pointer, that frame's caller cannot be found. 0: the
 * function uses no frame pointer, or several values are possible.
 */
uint64_t gt_frame_pointer(const struct gt_elfutils *dw, Dwfl *dwfl, const struct gt_still *still,
                          const struct gt_still_thread *task);
