/*
 * `gotrace -f`: records the program and all its descendants, each in a trace of its own, and merges
 * the traces when all have ended. So this process stays the program's parent.
 */
#pragma once

/*
 * Returns in a child, which has to become the program. Its environment makes each process record
 * into a directory beside GOTRACE_OUTPUT. This process waits, merges, and ends as the program did.
 * It ends with a message if the directory cannot be made.
 */
void gt_family_begin(void);
