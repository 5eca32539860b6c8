/* The texts about a recording for the user: the exit line, and the lines that replace it. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Writes a line about the recording that ended last. Whether the recording is complete. */
enum { GT_REPORT_LINE = PATH_MAX + 512 };
bool gt_report_describe(char line[GT_REPORT_LINE]);

/*
 * Prints that line on stderr; in a child only if something is missing. false: the line could not be
 * printed.
 */
bool gt_report_stopped(void);

/* Reports what an exec loses, since the new image cannot. error: the result of gt_drain_leave. */
void gt_report_before_exec(int error);

/* Called in a forked child. */
void gt_report_after_fork(void);
