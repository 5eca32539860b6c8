/* Where in the program something was called: what a row of a report is about. */
#ifndef GT_PLACES_H
#define GT_PLACES_H

#include "encoder/read/contents.h"

#include <stdio.h>

/* How many frames of the program's own a place shows: 1, or --frames. */
extern unsigned gt_place_frames;

/*
 * The place of a stack: the first frame of the program's own code (frames.h); where there is none,
 * the outermost that is known. NULL: there is no caller. The same place is the same pointer, and
 * valid for ever.
 */
const struct gt_where *gt_site_of(const struct gt_callers *stack);

/* The same with so many of the program's own functions that called it, or more. */
const struct gt_where *gt_site_with(const struct gt_callers *stack, unsigned callers);

/* The same of what runs in that frame of the stack: at no line, and in any function. */
const struct gt_where *gt_site_of_running(const struct gt_callers *stack, uint32_t frame,
                                          unsigned callers);

/* Which frame of the stack that is; 0: none. The next of the program's own; or stack->n: none. */
uint32_t gt_site_index(const struct gt_callers *stack);
uint32_t gt_site_caller(const struct gt_callers *stack, uint32_t frame);

/* The same if there is no stack: the function that waits, or "(no stack)". */
const char *gt_leaf_of(const struct gt_callers *stack);

/* In some order, that is 0 for the same place. */
int gt_compare_pointers(const void *a, const void *b);
int gt_compare_sites(const struct gt_where *a, const struct gt_where *b);

/* "what <- function (file:line)", with as many callers as are to be shown */
void gt_put_place(FILE *out, const char *what, const struct gt_where *site);
void gt_print_place(const char *what, const struct gt_where *site);
char *gt_place_text(const char *what, const struct gt_where *site); /* to be freed */

/* " < caller (file:line)" for each more that is to be shown */
void gt_put_callers(FILE *out, const struct gt_where *site);

/* A function's name as reports have it. */
void gt_put_function(FILE *out, const char *function);
void gt_print_function(const char *function);

#endif
