/*
 * Where this process stands in the tree of processes that the user started: the first one gets the
 * plain output name, all others a name of their own. What descendants are to know stands in the
 * environment that they inherit. It is put there once, at the start, before the last of the
 * program's own strings: whatever the program makes of its environment later is its own affair.
 */
#ifndef GT_DESCENT_H
#define GT_DESCENT_H

#include <stdbool.h>

/* The first process tells all others through the environment, which also survives exec. */
#define GT_ROOT_PID "GOTRACE_ROOT_PID"

/*
 * In the constructor, once per program image. True for a process that descends from a traced one,
 * and for a later image (exec) of the first process when an earlier one has left its trace at
 * `path`. An earlier one that left none, like env or nice, does not count.
 */
bool gt_descent_is_descendant(const char *path);

/* Whether the user started another process, from which this one descends. From the start on. */
bool gt_descent_is_child(void);

/*
 * Descendants find that variable. In the constructor: tell says what, a few short ones, and
 * hand_down puts all of them into the environment. kernels: the array that the kernel has made, or
 * NULL where that is not known.
 */
void gt_descent_tell(const char *name, const char *value);
void gt_descent_hand_down(char **kernels);

/*
 * Later images (exec) of this process, and what descends from them, are to do nothing: they inherit
 * a filter of system calls that cannot be asked what it does. Any thread.
 */
void gt_descent_confine(void);

/* Whether an image before this one has said so. */
bool gt_descent_is_confined(void);

#endif
