/*
 * A trace that a command has written, before the file gets its name: it is read once, by the rules
 * of Go's reader. One that Go refuses does not get the name.
 */
#ifndef GT_WRITTEN_H
#define GT_WRITTEN_H

#include <stddef.h>

/*
 * path: where the trace is now; name: what it is to be called; inputs: the n traces that it was
 * made of. Where Go refuses it, it goes to NAME.refused, and the program ends with a message.
 */
void gt_written_check(const char *path, const char *name, char *const *inputs, size_t n);

#endif
