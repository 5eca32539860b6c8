/* Staying as the parent of a program, which sees as little of that as its parent would of it. */
#ifndef GT_PARENT_H
#define GT_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns in a child, which is to become the program, 0; here its number. From then on the program
 * gets the signals that processes send to this one.
 */
pid_t gt_parent_begin(void);

/*
 * Waits until the program has ended: how, as waitpid(2) says it. descendants: and all that has come
 * of it, unless a signal says that this is enough.
 */
int gt_parent_await(bool descendants);

/*
 * Calls fn in a process of its own, which may end with a message; SIGINT and SIGTERM end it, too.
 * Whether fn came back.
 */
bool gt_parent_aside(void (*fn)(const void *arg), const void *arg);

/* Ends as the program did: our parent sees what it would have seen of that. */
_Noreturn void gt_parent_end_as(int status);

#endif
