/* See report.h. */
#include "report.h"

#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/path.h"
#include "encoder/base/printable.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/drain/recording.h"
#include "encoder/file/output.h"
#include "preload/registry/contention.h"
#include "preload/shared/options.h"
#include "symbolize/elf/elf_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool said_lost; /* before an exec */

#define NOT_IN_TIME "%s%s: could not be written in time; its end is missing"

enum { LOSS_TEXT = 400 };

/*
 * Lists the losses of a recording, or says that nothing is lost, and how long threads had to wait
 * to write. Whether nothing is lost.
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

/* For a recording in several files: their number, and the oldest one that is kept. */
static void describe_files(char text[FILES_TEXT], const struct gt_recording_summary *s)
{
    const struct gt_rotation_files *f = &s->files;
    const char *oldest = gt_path_name(f->oldest);
    *text = 0;
    if (f->n > 1 && f->removed)
        snprintf(text, FILES_TEXT, " in %u files, of which the last %u are kept, from %s on", f->n,
                 f->n - f->removed, oldest);
    else if (f->n > 1)
        snprintf(text, FILES_TEXT, " in %u files, from %s on", f->n, oldest);
}

/*
 * The file in which the user finds the recording. `gotrace -f` merges the traces of a family into
 * one file and removes them: then it is the merged file.
 */
struct file {
    const char *path;
    char part[32]; /* ", process 4711", or "" */
};

static struct file file_of(const char *path)
{
    struct file f = {.path = path};
    if (*gt_options.merged) {
        f.path = gt_options.merged;
        snprintf(f.part, sizeof f.part, ", process %ld", gt_syscall(SYS_getpid));
    }
    return f;
}

static bool is_program(const char *path)
{
    struct stat st;
    return gt_stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat its, other;
    return gt_stat(a, &its) == 0 && gt_stat(b, &other) == 0 && its.st_ino == other.st_ino &&
           its.st_dev == other.st_dev;
}

/*
 * Whether the program's PATH leads to the command, and to this file: another program may have the
 * name, too. file: NULL: any. Directories relative to the current one may be others for the user.
 */
static bool is_on_path(const char *command, const char *file)
{
    static char path[PATH_MAX] GT_SPARSE;
    for (const char *at = gt_options.path; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, command);
        if (*at == '/' && is_program(path))
            return !file || is_same_file(path, file);
        at += n;
    }
    return false;
}

/* The path of `gotrace`, where the build, `make install` or a copy puts it. NULL: none is there. */
static const char *tool_beside_us(void)
{
    static const char *const places[] = {"gotrace", "build/gotrace", "../bin/gotrace",
                                         "../../bin/gotrace"};
    static char path[PATH_MAX] GT_SPARSE;
    const struct link_map *ours = gt_elf_ours();
    const char *slash = ours ? strrchr(ours->l_name, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - ours->l_name), ours->l_name,
                 places[i]);
        if (is_program(path))
            return path;
    }
    return NULL;
}

enum { NEXT_TEXT = GT_LOG_LINE };

/* The command to type next: one that is there, else "". */
static void describe_next(char text[NEXT_TEXT], const struct file *f)
{
    struct gt_strbuf t = gt_strbuf_start(text, NEXT_TEXT);
    const char *tool = tool_beside_us();
    bool go = !tool && !gt_options.names_later && !*f->part && is_on_path("go", NULL);
    if (!tool && !go)
        return;
    gt_strbuf_add(&t, "; next: ");
    if (go)
        gt_strbuf_add(&t, "go tool trace ");
    else {
        gt_shell_word(&t, is_on_path("gotrace", tool) ? "gotrace" : tool);
        gt_strbuf_add(&t, " why ");
    }
    gt_shell_word(&t, f->path);
}

/* Describes a recording that was written. What to type next comes last, whole or not at all. */
static void describe_written(char line[GT_REPORT_LINE], const struct gt_recording_summary *s,
                             const struct file *f, const char *lost)
{
    enum { MOST = GT_LOG_LINE - (int)sizeof "gotrace: \n" };
    char files[FILES_TEXT], next[NEXT_TEXT];
    const char *waited = "";
    if (s->duration_ns && !gt_options.ring_bytes) /* a flight recorder's file is a part of it */
        waited = gt_contention_phrase(s->duration_ns);
    describe_files(files, s);
    describe_next(next, f);
    int n =
        snprintf(line, GT_REPORT_LINE, "%s%s: %.1f KiB%s, %llu events in %.3f s, %s%s%s%s", f->path,
                 f->part, (double)s->bytes / 1024, files, (unsigned long long)s->events,
                 (double)s->duration_ns / 1e9, lost, *waited ? "; " : "", waited, next);
    int without = n - (int)strlen(next);
    if (n > MOST && without < GT_REPORT_LINE)
        line[without] = 0;
}

bool gt_report_describe(char line[GT_REPORT_LINE])
{
    struct gt_recording_summary s = gt_recording_summary();
    struct file f = file_of(s.path);
    char lost[LOSS_TEXT];
    bool is_whole = describe_loss(lost, &s);
    if (!s.finished || s.error == -ETIMEDOUT)
        snprintf(line, GT_REPORT_LINE, NOT_IN_TIME, f.path, f.part);
    else if (s.error && !s.limited)
        snprintf(line, GT_REPORT_LINE, "cannot write %s%s: %s; the program was not affected",
                 f.path, f.part, gt_libc_error(-s.error));
    else if (s.limited && !s.bytes)
        snprintf(line, GT_REPORT_LINE, "%s%s: no file: GOTRACE_MAX_SIZE is too small for any of it",
                 f.path, f.part);
    else
        describe_written(line, &s, &f, lost);
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
    bool none = error == -EALREADY || error == -ESHUTDOWN; /* no recording is under way */
    bool failed = error == -ETIMEDOUT || (gt_options.ring_bytes && error && !none);
    if ((!failed && !s.error && !s.lost) || said_lost)
        return;
    said_lost = true; /* the next exec only tries another directory of PATH */
    struct file f = file_of(gt_output_path());
    if (error == -ETIMEDOUT)
        gt_log(NOT_IN_TIME, f.path, f.part);
    else if (s.error)
        gt_report_stopped();
    else if (failed)
        gt_log("cannot write %s%s: %s", f.path, f.part, gt_libc_error(-error));
    else
        gt_log("%s%s: %llu events lost: threads or the disk stood still", f.path, f.part,
               (unsigned long long)s.lost);
}

void gt_report_after_fork(void)
{
    said_lost = false;
    gt_log_be_child();
}
