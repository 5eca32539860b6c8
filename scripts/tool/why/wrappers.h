/*
 * Functions of the program that only wrap a wait or a call. How long they take depends on their
 * caller, so the caller becomes a part of the place.
 */
#pragma once

#include "sections.h"

void gt_wrappers_find(struct gt_sections *sections);

/* Number of callers to show for the function at that frame of the stack. */
unsigned gt_wrappers_at(const struct gt_sections *sections, const struct gt_callers *stack,
                        uint32_t frame);

/* Whether several functions call that one, and how long it waits depends on which of them does. */
bool gt_wrappers_is_shared(const struct gt_sections *sections, const char *function);
