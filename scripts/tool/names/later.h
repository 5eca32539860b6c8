/*
 * Traces recorded with GOTRACE_NAMES=later leave the look-up of names to their reader. A command
 * that opens such a trace reads a copy that has the names.
 */
#pragma once

#include "encoder/read/trace.h"

/*
 * Replaces an open trace by a copy with names, unless it has its names. Prints the modules whose
 * files are gone or are another build now. trace->named: path of the copy, valid as long as this
 * process runs.
 */
void gt_later_fill_in(struct gt_trace *trace);
