/* Recovers all that killed programs have left in a directory. */
#pragma once

#include <stdbool.h>

/*
 * Recovers every black box in the directory whose process is gone (gt_recover_orphan), each in a
 * process of its own. Removes a box when its trace is written, or if it has no events. Boxes of
 * running processes stay; so do boxes that cannot be recovered, with a message why. says: reports
 * all other boxes, too. false: a box could not be recovered.
 */
bool gt_recover_clean(const char *directory, bool says);
