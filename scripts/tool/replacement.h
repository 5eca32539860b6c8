/*
 * A file written anew: it appears under its name when it is whole. One at a time. Where it ends
 * early, by `exit` or a signal, nothing of it stays.
 */
#ifndef GT_REPLACEMENT_H
#define GT_REPLACEMENT_H

#include <stdio.h>

/* Why nothing may be written in that place, as the end of a sentence; NULL: it may. */
const char *gt_replacement_refusal(const char *path);

/*
 * In place of nothing, or of a regular file; never of a device, nor of what a symbolic link leads
 * to: others may have put that there. Ends the program with a message.
 */
FILE *gt_replacement_begin(const char *path);

/* What it is called until then. Never finished, it is a file for as long as we run. */
const char *gt_replacement_temporary(void);

/* Another file is made beside that place, named as it with this behind: goes where it goes. */
void gt_replacement_beside(const char *suffix);

/* With the permissions of the file `like`. */
void gt_replacement_finish(const char *like);

/* Nothing of it stays; also in a handler of signals. */
void gt_replacement_discard(void);

#endif
