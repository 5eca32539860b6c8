/* `gotrace --wait`: a program that is killed has a whole trace all the same. */
#ifndef GT_WAIT_H
#define GT_WAIT_H

/*
 * Returns in a child, which is to become the program, and has a black box. This process waits,
 * makes the trace whole if the program has left its box, and ends as the program did.
 */
void gt_wait_begin(void);

#endif
