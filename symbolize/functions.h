/* The part of a function's name that people want to read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether the function only wraps a primitive for the program's own code, so that readers do not
 * look for it. */
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
 * The length of a name without the parameters at its end: of "f(int) const" that of "f", but of
 * "(anonymous namespace)::f" and "f()::{lambda()#1}" the whole length.
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
