/* What threads do while they hold an interpreter's lock, and others wait for it. */
#pragma once

#include "sections.h"

struct gt_gil_use {
    uint32_t section; /* where its holders are longest; sections->unknown: that is not known */
    uint64_t ns, all; /* for so long, of so long in which they had a CPU or were in calls */
};

struct gt_gil_use gt_gil_use_of(struct gt_sections *sections, uint32_t lock, uint64_t from,
                                uint64_t to);
