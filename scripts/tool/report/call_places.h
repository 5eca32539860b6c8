/* Places: where in the program a call was made. A row of a report is about one place. */
#pragma once

#include "encoder/read/contents.h"

#include <stdio.h>

/* How many of the program's own frames a place shows: 1, or --frames. */
extern unsigned gt_place_frames;

/*
 * The place of a stack: the first frame of the program's own code (frame_code.h). If the stack has
 * none, the outermost frame whose function is known. NULL: there is no caller. Equal places have
 * equal pointers, which stay valid for ever.
 */
const struct gt_where *gt_site_of(const struct gt_callers *stack);

/* The place with at least `callers` of the program's own functions that called it. */
const struct gt_where *gt_site_with(const struct gt_callers *stack, unsigned callers);

/*
 * Whether none of the stack's code is the program's own, or of Python's library: all callers may
 * share its place.
 */
bool gt_is_of_libraries(const struct gt_callers *stack);

/*
 * The place and all that tells what is waited for there: all of the program's functions that called
 * it; or, if the stack is of libraries only, all frames. NULL: there is no caller.
 */
const struct gt_where *gt_purpose_of(const struct gt_callers *stack);

/*
 * The place of the function that runs in that frame of the stack: without a line, and in any code.
 */
const struct gt_where *gt_site_of_running(const struct gt_callers *stack, uint32_t frame,
                                          unsigned callers);

/*
 * The frame that gt_site_of takes (0: none), and the next frame of the program's own code after
 * `frame` (stack->n: none).
 */
uint32_t gt_site_index(const struct gt_callers *stack);
uint32_t gt_site_caller(const struct gt_callers *stack, uint32_t frame);

/*
 * Whether one of the program's functions that others call makes both calls: it takes something, and
 * gives it back.
 */
bool gt_is_taken_and_given(const struct gt_callers *waits, const struct gt_callers *wakes);

/* The innermost function on the stack, which waits or runs; "(no stack)" if there is no stack. */
const char *gt_leaf_of(const struct gt_callers *stack);

/* Whether a name, as that function's, begins with an element of `begins`; the last one is NULL. */
bool gt_begins_with(const char *name, const char *const *begins);

/* An arbitrary but fixed order; 0 for equal places. */
int gt_compare_pointers(const void *a, const void *b);
int gt_compare_sites(const struct gt_where *a, const struct gt_where *b);

/* "what <- function (file:line)", with as many callers as the place shows. */
void gt_put_place(FILE *out, const char *what, const struct gt_where *site);
void gt_print_place(const char *what, const struct gt_where *site);
char *gt_place_text(const char *what, const struct gt_where *site); /* the caller frees it */

/* " < caller (file:line)" for each further frame that the place shows. */
void gt_put_callers(FILE *out, const struct gt_where *site);

/* A function's name as reports show it. */
void gt_put_function(FILE *out, const char *function);
void gt_print_function(const char *function);
