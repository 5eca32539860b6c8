/*
 * Loads a library into the program's own linker namespace, for elfutils.c before glibc 2.34, where
 * it cannot have a namespace of its own. The guest shares the program's libc, but must neither end
 * the program nor load further libraries.
 */
#pragma once

#include <stdbool.h>

/*
 * Loads the library and those that it needs, and returns the result of dlopen. In these libraries
 * abort and failed assertions call `bail`, as long as `inside` says that the thread runs them for
 * us. While the library is loaded, its calls of dlopen find nothing.
 */
void *gt_guest_load(const char *library, bool (*inside)(void), void (*bail)(void));
