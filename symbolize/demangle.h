/* Readable names of C++ and Rust symbols. One thread at a time. */
#ifndef GT_DEMANGLE_H
#define GT_DEMANGLE_H

#include <stddef.h>

/*
 * The demangled name in buf, cut at size, or symbol itself when it is not a mangled one.
 * std::thread's trampoline method is given the name of the callable it runs.
 */
const char *gt_demangle(const char *symbol, char *buf, size_t size);

/*
 * std::thread::_State_impl<std::thread::_Invoker<std::tuple<X, …> > >::_M_run() to X, the callable
 * that this method runs: what the user wrote. Other names as they are. Changes name.
 */
char *gt_thread_callable(char *name);

#endif
