/* What a forked child keeps of its parent's encoder. */
#pragma once

/*
 * Called by the only thread of the child. Afterwards nothing is recorded, and no thread is the
 * drain side. The parent's threads may have been anywhere, except in code that a fork waits for.
 */
void gt_encoder_after_fork(void);
