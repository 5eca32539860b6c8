/* For `gotrace cut --around`: finds an event's time in a trace. */
#pragma once

#include <stdint.h>

/*
 * Finds the event `what`; *from and *to are its time, in ns. Reads the whole trace; ends the
 * program if the trace has no such event. `what` is
 *
 * - "longest": the longest wait that another thread ended, of the waits for locks if there are any
 * - "log:TEXT": the first log that contains TEXT
 * - "task:NAME": the slowest task or region of that name
 */
void gt_around_find(const char *input, const char *what, uint64_t *from, uint64_t *to);
