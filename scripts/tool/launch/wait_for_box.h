/* `gotrace --wait`: completes the trace of a program that is killed. */
#pragma once

/*
 * Returns in a child, which has to become the program, and has a black box. This process waits,
 * completes the trace if the program has left its box, and ends as the program did.
 */
void gt_wait_begin(void);
