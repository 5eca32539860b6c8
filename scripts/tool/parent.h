/* Stays as the parent of a program, so that neither the program nor our own parent notices. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns 0 in a child, which has to become the program; here, the child's pid. From then on the
 * program gets the signals that processes send to this one.
 */
pid_t gt_parent_begin(void);

/*
 * Waits until the program has ended; returns its status as of waitpid(2). descendants: also waits
 * for all its descendants, unless a signal ends the wait.
 */
int gt_parent_await(bool descendants);

/*
 * Calls fn in a process of its own, which fn may end with a message; SIGINT and SIGTERM end it,
 * too. Returns whether fn returned.
 */
bool gt_parent_aside(void (*fn)(const void *arg), const void *arg);

/* Ends this process as the program ended, so that our parent sees the program's status. */
_Noreturn void gt_parent_end_as(int status);
