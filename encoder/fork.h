/* What a forked child has of its parent's encoder. */
#ifndef GT_ENCODER_FORK_H
#define GT_ENCODER_FORK_H

/*
 * In the child, whose only thread calls: nothing is recorded, and nobody is the drain side. The
 * parent's threads may have been anywhere but in what a fork waits for.
 */
void gt_encoder_after_fork(void);

#endif
