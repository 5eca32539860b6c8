/* What killed programs have left in a directory, recovered all at once. */
#ifndef GT_RECOVER_CLEAN_H
#define GT_RECOVER_CLEAN_H

#include <stdbool.h>

/*
 * Recovers every black box in the directory whose process is gone (gt_recover_orphan), each in a
 * process of its own, and removes it once its trace is written, or at once where no events are in
 * it. Boxes of running processes stay, and so do those that cannot be recovered: why is said.
 * says: also what became of the others. false: some could not be recovered.
 */
bool gt_recover_clean(const char *directory, bool says);

#endif
