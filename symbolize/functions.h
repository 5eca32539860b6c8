/* What of a function's name people want to read. */
#ifndef GT_FUNCTIONS_H
#define GT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether it stands between a primitive and the program's own code: nobody looks for it. */
static inline bool gt_is_wrapper(const char *function)
{
    static const char *const prefixes[] = {"std::", "__gnu_cxx::", "__gthread",
                                           "core::", "alloc::"};
    function += *function == '<'; /* Rust: <std::sync::Mutex>::lock */
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(function, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

/*
 * How much of a name is not its parameters, at the end: "f(int) const" is f; but
 * "(anonymous namespace)::f" and "f()::{lambda()#1}" are all names.
 */
static inline size_t gt_without_parameters(const char *function)
{
    static const char constant[] = " const";
    size_t n = strlen(function), end = n, depth = 0;
    if (n > sizeof constant && strcmp(function + n - (sizeof constant - 1), constant) == 0)
        end = n - (sizeof constant - 1);
    if (!end || function[end - 1] != ')')
        return n;
    while (end) {
        char c = function[--end];
        depth += c == ')';
        depth -= c == '(';
        if (!depth)
            break;
    }
    return end ? end : n;
}

#endif
