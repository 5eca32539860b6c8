/* Readable names of C++ and Rust symbols. One thread at a time. */
#pragma once

#include <stddef.h>

/*
 * The demangled name, stored in buf and cut at size, or `symbol` itself if it is not mangled. The
 * trampoline method of std::thread gets the name of the callable that it runs.
 */
const char *gt_demangle(const char *symbol, char *buf, size_t size);

/*
 * Turns std::thread::_State_impl<std::thread::_Invoker<std::tuple<X, …> > >::_M_run() into X, the
 * callable that this method runs and the user wrote. Returns other names unchanged. Changes name.
 */
char *gt_thread_callable(char *name);
