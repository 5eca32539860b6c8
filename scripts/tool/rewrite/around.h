/* For `gotrace cut --around`: where in a trace something is. */
#ifndef GT_AROUND_H
#define GT_AROUND_H

#include <stdint.h>

/*
 * "longest": the longest wait that another thread ended; "log:TEXT": the first log that says that;
 * "task:NAME": the slowest task or region of that name. Its time, in ns. Reads all of the trace;
 * where there is none, ends the program.
 */
void gt_around_find(const char *input, const char *what, uint64_t *from, uint64_t *to);

#endif
