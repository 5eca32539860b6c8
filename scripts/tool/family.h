/*
 * `gotrace -f`: the program and all its descendants, each with a trace of its own, and one of them
 * all when they have ended. For that this process stays the program's parent.
 */
#ifndef GT_FAMILY_H
#define GT_FAMILY_H

/*
 * Returns in a child, which is to become the program, with an environment that has each process
 * record into a directory beside GOTRACE_OUTPUT. This process waits, merges, and ends as the
 * program did. Ends with a message where the directory cannot be made.
 */
void gt_family_begin(void);

#endif
