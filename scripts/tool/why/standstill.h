/*
 * A program that stood still: from some time on to the end of its trace no thread did anything, and
 * threads waited, without a time limit, for each other or for what did not come. A program whose
 * threads all wait for work does not stand still, nor does one that waits for a child process.
 */
#pragma once

#include "sections.h"

struct gt_standstill {
    uint64_t from, ns; /* ns: to the end of the trace; 0: it did not stand still */
    uint32_t *waiter;  /* threads that do not wait for work: main, then what it waits for */
    size_t n;
};

/* length: of the interval that is looked at, up to the end of the trace, in ns. */
void gt_standstill_find(struct gt_standstill *still, const struct gt_graph *graph, uint64_t length);

/* The thread that this one waits for when the trace ends; or GT_NOBODY. */
uint32_t gt_standstill_after(const struct gt_graph *graph, uint32_t thread);

/* The section of a waiter's wait. */
uint32_t gt_standstill_section(struct gt_sections *sections, uint32_t thread);

/* The name of the lock or condition variable that a waiter waits for; "": it has none. */
const char *gt_standstill_lock(const struct gt_graph *graph, uint32_t thread);
