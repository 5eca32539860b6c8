/* Reports on a terminal: lines that are wider than it go on below, indented. */
#pragma once

#include <stdbool.h>

/*
 * From here on standard output is folded, if it is a terminal. Called before the first output. A
 * line breaks at a blank, and goes on below its last column if that begins in the left two thirds.
 */
void gt_fold_output(void);

/* Whether standard output is folded to fewer columns than this. */
bool gt_fold_is_below(int columns);

/* Writes the rest of a line that has not ended. Called at the end of the process. */
void gt_fold_end(void);
