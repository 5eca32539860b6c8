/*
 * Resets the encoder in a forked child. The child keeps the tables of stacks and strings, and the
 * number of the generation. It keeps no buffers, writers, files or recordings, and its locks are
 * free.
 */
#pragma once

/*
 * Called by the only thread of the child. Afterwards nothing is recorded, and no thread is the
 * drain side. The parent's threads may have been anywhere, except in code that a fork waits for.
 */
void gt_encoder_after_fork(void);
