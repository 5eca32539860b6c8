/*
 * Where modules have left lately: by that a stack of before is known to mean the same now, and
 * needs no second entry. Any context reads, without a lock; one at a time writes.
 */
#ifndef GT_PLACES_H
#define GT_PLACES_H

#include "modules.h"

/* m->unloaded is set, and not the epoch yet. */
void gt_places_left(const struct gt_module *m);

#endif
