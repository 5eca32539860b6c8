/* What is said of a recording: the exit line, and what stands in its place. */
#ifndef GT_REPORT_H
#define GT_REPORT_H

#include <limits.h>
#include <stdbool.h>

/* One line about the recording that ended last. Whether nothing of it is missing. */
enum { GT_REPORT_LINE = PATH_MAX + 512 };
bool gt_report_describe(char line[GT_REPORT_LINE]);

/*
 * Says it on standard error; a child, if something is missing. false: it could not, and the user
 * does not know.
 */
bool gt_report_stopped(void);

/* What exec loses, which nobody could say afterwards. `error`: of gt_drain_leave. */
void gt_report_before_exec(int error);

/* In a forked child. */
void gt_report_after_fork(void);

#endif
