/* Names of functions that fit a line. */
#ifndef GT_SHORT_NAME_H
#define GT_SHORT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether names are shown as they are: --wide. */
extern bool gt_wide_names;

/*
 * What to show of a function's name: without template arguments, long parameters, Rust's hashes
 * and the compiler's suffixes; the lambda that a thread's routine of the library's runs, instead of
 * that. Its last parts, where it is longer than `most` all the same. In buf, cut at size; or the
 * name itself where all of it is to be shown.
 */
const char *gt_short_name(const char *function, char *buf, size_t size, size_t most);

/*
 * The program's lambda that a template of the library was made for, which is what runs there where
 * it is inlined: "std::_Function_handler<void (), f()::{lambda()#1}>::_M_invoke" has one. Its
 * length, and where it begins in the name; 0: there is none.
 */
size_t gt_lambda_in(const char *function, const char **begin);

#endif
