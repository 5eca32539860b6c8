/* Where in the program something was called: what a row of a report is about. */
#ifndef GT_PLACES_H
#define GT_PLACES_H

#include "encoder/read/contents.h"

/* The first caller that does not just wrap what was called; NULL: there is none. */
const struct gt_where *gt_site_of(const struct gt_callers *stack);

/* The same if there is no stack: the function that waits, or "(no stack)". */
const char *gt_leaf_of(const struct gt_callers *stack);

/* In some order, that is 0 for the same place. */
int gt_compare_pointers(const void *a, const void *b);
int gt_compare_sites(const struct gt_where *a, const struct gt_where *b);

/* "what <- function (file:line)" */
void gt_print_place(const char *what, const struct gt_where *site);

#endif
