/*
 * Asynchronous I/O by a library. A program that asks the kernel itself, or links the library
 * statically, is not seen.
 */
#include "preload/bind/foreign.h"
#include "preload/bind/real.h"
#include "preload/waits/slice.h"

struct uring {
#define GT_URING(result, name, parameters, arguments) result(*name) parameters;
#define GT_AIO(result, name, parameters, arguments)
#include "preload/tables/async.def"
};

struct aio {
#define GT_URING(result, name, parameters, arguments)
#define GT_AIO(result, name, parameters, arguments) result(*name) parameters;
#include "preload/tables/async.def"
};

#define CALL(library, result, name, parameters, arguments)                           \
    GT_EXPORT result name parameters                                                 \
    {                                                                                \
        const struct library *real =                                                 \
            (const void *)gt_foreign_of(&gt_##library, __builtin_return_address(0)); \
        GT_SLICE(slice) = gt_slice_begin(GT_ASYNC_##name, GT_NETWORK);               \
        return real->name arguments;                                                 \
    }

#define GT_URING(result, name, parameters, arguments) \
    CALL(uring, result, name, parameters, arguments)
#define GT_AIO(result, name, parameters, arguments) CALL(aio, result, name, parameters, arguments)
#include "preload/tables/async.def"
