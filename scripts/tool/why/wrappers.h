/*
 * Functions of the program's that only wrap a wait or a call: how long that takes depends on who
 * calls them, who is therefore a part of the place.
 */
#ifndef GT_WHY_WRAPPERS_H
#define GT_WHY_WRAPPERS_H

#include "sections.h"

void gt_wrappers_find(struct gt_sections *sections);

/* How many callers are to be shown of a function at that frame of the stack. */
unsigned gt_wrappers_at(const struct gt_sections *sections, const struct gt_callers *stack,
                        uint32_t frame);

#endif
