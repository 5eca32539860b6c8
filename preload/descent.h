/*
 * Where this process stands in the tree of processes that the user started: the first one gets the
 * plain output name, all others a name of their own.
 */
#ifndef GT_DESCENT_H
#define GT_DESCENT_H

#include <stdbool.h>

/*
 * In the constructor, once per program image. True for a process that descends from a traced one,
 * and for a later image (exec) of the first process when an earlier one has left its trace at
 * `path`. An earlier one that left none, like env or nice, does not count.
 */
bool gt_descent_is_descendant(const char *path);

#endif
