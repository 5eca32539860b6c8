/* What a killed program has left, for commands that read a trace. */
#ifndef GT_RECOVER_H
#define GT_RECOVER_H

/*
 * Where the trace is that such a file makes with the one which it goes on with, for as long as we
 * run; any other file itself. Ends the program with a message where that cannot be made.
 */
const char *gt_recovered(const char *path);

#endif
