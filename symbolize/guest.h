/*
 * A library in the program's own namespace, for elfutils.c, where it cannot have one: before glibc
 * 2.34. It shares the program's libc, but must neither end the program nor bring others along.
 */
#ifndef GT_GUEST_H
#define GT_GUEST_H

#include <stdbool.h>

/*
 * In the library, and those that come with it, abort and failed assertions are calls of `bail`
 * while `inside` says that the thread is in one of them for us; while it is loaded, dlopen finds
 * nothing. What dlopen would return.
 */
void *gt_guest_load(const char *library, bool (*inside)(void), void (*bail)(void));

#endif
