/*
 * Traces whose names were to be looked up by who reads them (GOTRACE_NAMES=later): whoever opens
 * one gets a copy that has them.
 */
#ifndef GT_LATER_H
#define GT_LATER_H

#include "encoder/read/trace.h"

/*
 * Does that to a trace that was opened, unless it has its names. Says of which modules the files
 * are not here any more, or others by now. trace->named: where the copy is, for as long as we run.
 */
void gt_later_fill_in(struct gt_trace *trace);

#endif
