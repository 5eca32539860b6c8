/*
 * A library in a linker namespace of its own, with a libc of its own, in somebody else's process:
 * what it calls must not end that, and who looks at the process from outside must not be misled.
 */
#ifndef GT_NAMESPACE_H
#define GT_NAMESPACE_H

/*
 * In the library, and those it brings along, abort and failed assertions are calls of `bail`, and
 * dlopen finds nothing. What dlopen would return; NULL: no library, or no namespace.
 */
void *gt_namespace_load(const char *library, void (*bail)(void));

#endif
