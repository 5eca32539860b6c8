/* What stands between a primitive and the program's own code: nobody looks for it. */
#ifndef GT_WRAPPERS_H
#define GT_WRAPPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

#endif
