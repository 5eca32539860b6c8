/* See report.h. */
#include "report.h"

#include "options.h"

#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/output.h"
#include "encoder/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool said_lost; /* before an exec */

#define NOT_IN_TIME "%s: could not be written in time; its end is missing"

enum { LOSS_TEXT = 400 };

/*
 * All that is missing; else that nothing is. And how long threads waited for that. Whether nothing
 * is missing.
 */
static bool describe_loss(char text[LOSS_TEXT], const struct gt_recording_summary *s)
{
    const struct {
        uint64_t n;
        const char *what;
    } lost[] = {
        {s->lost, "events lost: threads or the disk stood still"},
        {s->stacks_lost, "stacks lost: too many new ones at a time"},
        {s->samples_lost, "CPU samples lost"},
        {s->sched_gaps, "gaps in when threads had a CPU: the kernel's rings were full"},
        {s->sched_unwatched, "threads not watched: limits of open files or locked memory"},
    };
    int n = s->limited ? snprintf(text, LOSS_TEXT, "stopped at GOTRACE_MAX_SIZE") : 0;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        if (lost[i].n)
            n += snprintf(text + n, LOSS_TEXT - (size_t)n, "%s%llu %s", n ? ", " : "",
                          (unsigned long long)lost[i].n, lost[i].what);
    }
    bool is_whole = !n;
    const char *but = n ? "," : ", but";
    if (!n)
        n = snprintf(text, LOSS_TEXT, "nothing lost");
    if (s->waits)
        snprintf(text + n, LOSS_TEXT - (size_t)n, "%s threads waited %llu times, %.3f s, to write",
                 but, (unsigned long long)s->waits, (double)s->wait_ns / 1e9);
    return is_whole;
}

enum { FILES_TEXT = NAME_MAX + 100 };

/* Of a recording in several files: how many, and from where on they are there. */
static void describe_files(char text[FILES_TEXT], const struct gt_recording_summary *s)
{
    const struct gt_rotation_files *f = &s->files;
    const char *slash = strrchr(f->oldest, '/'), *oldest = slash ? slash + 1 : f->oldest;
    *text = 0;
    if (f->n > 1 && f->removed)
        snprintf(text, FILES_TEXT, " in %u files, of which the last %u are kept, from %s on", f->n,
                 f->n - f->removed, oldest);
    else if (f->n > 1)
        snprintf(text, FILES_TEXT, " in %u files, from %s on", f->n, oldest);
}

bool gt_report_describe(char line[GT_REPORT_LINE])
{
    struct gt_recording_summary s = gt_recording_summary();
    char lost[LOSS_TEXT], files[FILES_TEXT];
    bool is_whole = describe_loss(lost, &s);
    describe_files(files, &s);
    if (!s.finished || s.error == -ETIMEDOUT)
        snprintf(line, GT_REPORT_LINE, NOT_IN_TIME, s.path);
    else if (s.error && !s.limited)
        snprintf(line, GT_REPORT_LINE, "cannot write %s: %s; the program was not affected", s.path,
                 gt_libc_error(-s.error));
    else if (s.limited && !s.bytes)
        snprintf(line, GT_REPORT_LINE, "%s: no file: GOTRACE_MAX_SIZE is too small for any of it",
                 s.path);
    else
        snprintf(line, GT_REPORT_LINE, "%s: %.1f KiB%s, %llu events in %.3f s, %s; view: %s %s",
                 s.path, (double)s.bytes / 1024, files, (unsigned long long)s.events,
                 (double)s.duration_ns / 1e9, lost,
                 gt_options.names_later ? "gotrace view" : "go tool trace", s.path);
    return is_whole && s.finished && !s.error;
}

bool gt_report_stopped(void)
{
    char line[GT_REPORT_LINE];
    bool is_whole = gt_report_describe(line);
    return is_whole ? gt_log_note("%s", line) : gt_log("%s", line);
}

void gt_report_before_exec(int error)
{
    struct gt_recording_summary s = gt_recording_summary();
    bool none = error == -EALREADY || error == -ESHUTDOWN; /* is under way */
    bool failed = error == -ETIMEDOUT || (gt_options.ring_bytes && error && !none);
    if ((!failed && !s.error && !s.lost) || said_lost)
        return;
    said_lost = true; /* the next exec is only another directory of PATH */
    if (error == -ETIMEDOUT)
        gt_log(NOT_IN_TIME, gt_output_path());
    else if (s.error)
        gt_report_stopped();
    else if (failed)
        gt_log("cannot write %s: %s", s.path, gt_libc_error(-error));
    else
        gt_log("%s: %llu events lost: threads or the disk stood still", gt_output_path(),
               (unsigned long long)s.lost);
}

void gt_report_after_fork(void)
{
    said_lost = false;
    gt_log_be_child();
}
