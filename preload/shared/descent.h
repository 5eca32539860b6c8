/*
 * The place of this process in the tree of processes that the user started. The first process gets
 * the plain output name, all others a name of their own.
 *
 * Descendants learn about the first process from the environment that they inherit. The constructor
 * puts our variables there once, before the last of the program's own strings. Whatever the program
 * makes of its environment later is its own affair.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The PID of the first process, for all others. The environment also survives exec. */
#define GT_ROOT_PID "GOTRACE_ROOT_PID"

/* When the first process began: CLOCK_REALTIME in ns. */
#define GT_ROOT_TIME "GOTRACE_ROOT_TIME"

/*
 * Whether this process descends from a traced one, or is a later image (exec) of the first process
 * after an earlier image has left its trace at `path`. An earlier image that left no trace, such as
 * env or nice, does not count. Called in the constructor, once per program image.
 */
bool gt_descent_is_descendant(const char *path);

/*
 * Whether an earlier image (exec) of this process has left a trace at `path`. Any thread, after
 * gt_descent_is_descendant has been called.
 */
bool gt_descent_has_left(const char *path);

/*
 * When the first process of this run began. If that one did not say (an older library): when the
 * first process that did began. Valid after gt_descent_is_descendant.
 */
uint64_t gt_descent_since(void);

/* Whether this process descends from another one, which the user started. Valid from the start. */
bool gt_descent_is_child(void);

/*
 * Give descendants environment variables; called in the constructor. gt_descent_tell collects a
 * variable; there is room for a few short ones. gt_descent_hand_down then puts all of them into the
 * environment. kernels: the array that the kernel made, or NULL if it is not known.
 */
void gt_descent_tell(const char *name, const char *value);
void gt_descent_hand_down(char **kernels);

/*
 * Makes libgotrace do nothing in later images (exec) of this process and in their descendants: they
 * inherit a seccomp filter that they cannot read. Any thread.
 */
void gt_descent_confine(void);

/* Whether an earlier image or an ancestor has called gt_descent_confine. */
bool gt_descent_is_confined(void);
