/* Recovers what a killed program has left, for commands that read a trace. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether that file is a black box. */
bool gt_is_box(const char *path);

/*
 * For a black box: makes its trace, together with the trace file that it continues, and returns the
 * trace's path, valid as long as this process runs. Any other path is returned as it is. Ends the
 * program with a message if the trace cannot be made.
 */
const char *gt_recovered(const char *path);

/* The black box of that process in the directory; NULL: none. The caller frees it. */
char *gt_recover_find(const char *directory, pid_t pid);

/*
 * Makes the trace of a box's process; the caller holds the lock of the box. The trace replaces the
 * trace file that the box continues. If there is none, its name is the box's without .live, with
 * the pid added if that name is taken. The box stays. false: the box has no events beyond the
 * trace's, and nothing is written. Ends the program with a message if the trace cannot be made.
 * says: prints the result.
 */
struct stat;
bool gt_recover_orphan(const char *box, const struct stat *locked, bool says);

/*
 * Makes the trace of the box's process, in place of the trace file that the box continues, or, if
 * there is none, in the directory. Then removes the box. Ends the program with a message if the
 * trace cannot be made.
 */
void gt_recover_in_place(const char *box, const char *directory);
