/* Shortens names of functions, so that they fit a line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* --wide: names are shown in full, and tables with all columns. */
extern bool gt_wide_names;

/*
 * The short form of a function's name: without template arguments, long parameters, Rust's hashes
 * and the compiler's suffixes. For a library's function that runs a thread's lambda, it is the
 * lambda. A name that still has more than `most` characters keeps only its last parts. The result
 * is in buf, cut before the character that has no room there; or it is `function` itself if names
 * are shown in full.
 */
const char *gt_short_name(const char *function, char *buf, size_t size, size_t most);

/*
 * Finds the program's lambda in the name of a library's template that was made for it. That lambda
 * is what runs there if it was inlined. This name has one:
 *
 *   "std::_Function_handler<void (), f()::{lambda()#1}>::_M_invoke"
 *
 * Returns the lambda's length, and in *begin where it begins; 0: the name has none.
 */
size_t gt_lambda_in(const char *function, const char **begin);
