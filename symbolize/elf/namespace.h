/*
 * Loads a library into a linker namespace of its own, with a libc of its own. The library must not
 * end the program, and must not mislead debuggers that look at the process.
 */
#pragma once

/*
 * Loads the library and those that it needs. In these libraries abort and failed assertions call
 * `bail`, and dlopen finds nothing. Returns the result of dlopen; NULL: no library, or no
 * namespace.
 */
void *gt_namespace_load(const char *library, void (*bail)(void));
