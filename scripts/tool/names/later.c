/*
 * See later.h. The copy is a file without a name. A child makes it: what is known of modules there,
 * and what damaged files do to it, stays there.
 */
#include "later.h"

#include "naming.h"

#include "scripts/tool/tool.h"

#include "encoder/read/batches.h"
#include "encoder/read/need.h"
#include "encoder/read/v1_records.h"
#include "encoder/v1/pages.h"
#include "symbolize/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a trace is one ---------------------------------------------------------------------- */

/* In the first page. */
static bool v1_says_so(struct gt_bytes bytes, const struct gt_format *format)
{
    struct gt_v1_record record;
    if (gt_bytes_left(&bytes) > GT_V1_PAGE)
        bytes.end = bytes.p + GT_V1_PAGE;
    while (gt_v1_record_next(&bytes, format, &record)) {
        if (gt_naming_v1_says_later(&record))
            return true;
    }
    return false;
}

/* In the tables of the first generation. */
static bool v2_says_so(struct gt_bytes bytes, const struct gt_format *format)
{
    struct gt_batch batch;
    struct gt_bytes text;
    uint64_t id;
    bytes.end = gt_generation_end(bytes, format);
    while (bytes.end && gt_batch_next(&bytes, &batch)) {
        bool strings = batch.kind == GT_EV_STRINGS && gt_get_byte(&batch.data);
        while (strings && gt_batch_next_string(&batch.data, &id, &text)) {
            if (gt_naming_v2_says_later(&text))
                return true;
        }
    }
    return false;
}

static bool says_so(const struct gt_trace *trace)
{
    struct gt_bytes bytes = {trace->base + GT_HEADER_BYTES, trace->base + trace->size, false};
    return (trace->format->v1 ? v1_says_so : v2_says_so)(bytes, trace->format);
}

/* The copy ------------------------------------------------------------------------------------ */

static void refused(const struct gt_module *m, const char *path)
{
    (void)m;
    (void)path;
}

static void say_missing(const struct gt_naming *naming)
{
    for (const struct gt_named_module *n = naming->modules; n; n = n->next) {
        const struct gt_module *m = n->module;
        if (!n->nameless || gt_symbolize_has_files(naming->symbolizer, 1, m->lo))
            continue;
        gt_say("%s %s, the trace has addresses for it: gotrace symbolize --debug-dir=DIR takes "
               "names from a copy",
               m->path,
               access(m->path, R_OK) == 0 ? "is another build by now" : "cannot be read here");
    }
}

/* In the child. */
static bool write_copy(const struct gt_trace *trace, FILE *out)
{
    static const char *const none = NULL;
    const struct gt_files_elsewhere elsewhere = {.directories = &none, .refused = refused};
    struct gt_naming naming = {.last = true};
    gt_files_set_elsewhere(&elsewhere);
    (trace->format->v1 ? gt_rename_v1 : gt_rename_v2)(&naming, trace, out);
    bool whole = fflush(out) == 0 && !ferror(out);
    if (whole)
        say_missing(&naming);
    else
        gt_say("%s: no names: %s", trace->path, strerror(errno));
    return whole;
}

/* NULL: it cannot be made, and why was said. */
static FILE *nameless_file(const struct gt_trace *trace)
{
    const char *directory = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/gotrace-XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!file)
        gt_say("%s: no names: %s: %s", trace->path, path, strerror(errno));
    return file;
}

/* A path to the copy; NULL: there is none, and why was said. */
static const char *copy(const struct gt_trace *trace)
{
    FILE *out = nameless_file(trace);
    char *path;
    int status;
    if (!out)
        return NULL;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(write_copy(trace, out) ? 0 : GT_EXIT_FAILED);
    if (child < 0 || TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) != child)
        gt_fail(GT_EXIT_FAILED, "%s", strerror(errno));
    if (WIFSIGNALED(status))
        gt_say("%s: no names: looking them up ended by signal %d", trace->path, WTERMSIG(status));
    if (asprintf(&path, "/proc/%d/fd/%d", getpid(), fileno(out)) < 0)
        gt_fail(GT_EXIT_FAILED, "no memory");
    return WIFEXITED(status) && !WEXITSTATUS(status) ? path : NULL;
}

/* Commands open a trace more than once. */
static const char *copy_once(const struct gt_trace *trace)
{
    static struct made {
        struct made *next;
        const char *of, *path;
    } * all;
    struct made *made = all;
    while (made && strcmp(made->of, trace->path) != 0)
        made = made->next;
    if (!made) {
        made = gt_need(malloc(sizeof *made));
        *made = (struct made){all, gt_need(strdup(trace->path)), copy(trace)};
        all = made;
    }
    return made->path;
}

void gt_later_fill_in(struct gt_trace *trace)
{
    struct gt_trace named;
    const char *path = says_so(trace) ? copy_once(trace) : NULL;
    const char *why = path ? gt_trace_open(&named, path) : NULL;
    if (why)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, why);
    if (!path)
        return;
    munmap((void *)(uintptr_t)trace->base, trace->size);
    named.path = trace->path;
    named.named = path;
    named.file_bytes = trace->file_bytes;
    *trace = named;
}
