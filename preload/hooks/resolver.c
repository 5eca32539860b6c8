/*
 * Queries to name servers, and background look-ups of names. Before glibc 2.34 the libraries that
 * have these functions may be loaded at any time: foreign.h.
 */
#include "preload/bind/foreign.h"
#include "preload/bind/real.h"
#include "preload/waits/slice.h"

struct library {
#define GT_RESOLVER(result, name, parameters, arguments) result(*name) parameters;
#include "preload/tables/resolver.def"
};

#define GT_RESOLVER(result, name, parameters, arguments)                            \
    GT_EXPORT result name parameters                                                \
    {                                                                               \
        const struct library *real =                                                \
            (const void *)gt_foreign_of(&gt_resolver, __builtin_return_address(0)); \
        GT_SLICE(slice) = gt_slice_begin(GT_RESOLVER_##name, GT_NETWORK);           \
        return real->name arguments;                                                \
    }
#include "preload/tables/resolver.def"
