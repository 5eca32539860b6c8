/*
 * Checks a trace that a command has written, before the file gets its name: reads it once, by the
 * rules of Go's reader. A trace that Go refuses does not get the name.
 */
#pragma once

#include <stddef.h>

/*
 * path: the trace's present path. name: the name that it is to get. inputs: the n traces that it
 * was made of. If Go refuses the trace, renames it NAME.refused, and ends the program with a
 * message.
 */
void gt_written_check(const char *path, const char *name, char *const *inputs, size_t n);
