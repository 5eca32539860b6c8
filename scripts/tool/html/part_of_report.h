/*
 * The output of another command of `gotrace`, which a report contains. A child process runs the
 * command, so that its memory and its failures are not the report's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* For an option of the command: a file, besides its output. */
#define GT_REPORT_MORE "/proc/self/fd/3"

struct gt_report_part {
    const char *argv[12]; /* "gotrace", the command's name, and so on; ends with NULL */
    pid_t child;
    int out, err, more; /* files without a name: what the command wrote */
    const char *text;   /* after gt_report_part_wait: its output */
    size_t size;
    const char *more_text; /* what it wrote to the file GT_REPORT_MORE */
    const char *said;      /* its messages, without their "gotrace: " and newline; "": none */
    bool ok;               /* it ended with status 0 */
};

/* Starts the command. Several may run at a time. A failure ends the program with a message. */
void gt_report_part_start(struct gt_report_part *part);

/* Waits until the command has ended. Texts stay until this process ends. */
void gt_report_part_wait(struct gt_report_part *part);
