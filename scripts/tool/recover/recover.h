/* What a killed program has left, for commands that read a trace. */
#ifndef GT_RECOVER_H
#define GT_RECOVER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether that file is such. */
bool gt_is_box(const char *path);

/*
 * Where the trace is that such a file makes with the one which it goes on with, for as long as we
 * run; any other file itself. Ends the program with a message where that cannot be made.
 */
const char *gt_recovered(const char *path);

/* What that process has left in the directory; NULL: nothing. The caller frees it. */
char *gt_recover_find(const char *directory, pid_t pid);

/*
 * Makes of a box, the file whose lock the caller has, the trace of its process: in place of the
 * trace which it goes on with, else under the box's own name without .live, or with the process's
 * number where that is another's. The box stays. false: no events are in it that the trace has not,
 * and nothing is written. Ends the program with a message where the trace cannot be made. says:
 * what was recovered.
 */
struct stat;
bool gt_recover_orphan(const char *box, const struct stat *locked, bool says);

/*
 * Makes of it the trace of that process, in place of the one which it goes on with, or, where there
 * is none, in the directory. It is removed then. Ends the program with a message where that cannot
 * be.
 */
void gt_recover_in_place(const char *box, const char *directory);

#endif
