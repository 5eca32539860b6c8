/*
 * The one voice of the tracer: a line `gotrace: …` on the program's standard error. Not from signal
 * handlers. Silent while gt_log_quiet.
 */
#ifndef GT_LOG_H
#define GT_LOG_H

#include <stdbool.h>

extern bool gt_log_quiet;

void gt_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
