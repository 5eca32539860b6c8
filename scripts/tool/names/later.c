/* See later.h. */
#include "later.h"

#include "naming.h"

#include "encoder/file/v1/pages.h"
#include "encoder/read/batches.h"
#include "encoder/read/v1_records.h"
#include "scripts/tool/copy.h"
#include "scripts/tool/tool.h"
#include "symbolize/elf/files.h"
#include "symbolize/symbolize.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether a trace lacks its names ------------------------------------------------------------- */

/* v1 says so in the first page. */
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

/* v2 says so in the strings of the first generation. */
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
        if (!n->nameless || gt_symbolize_has_files(naming->symbolizer, 1, m->lo, false))
            continue;
        gt_say("%s %s, the trace has addresses for it: gotrace symbolize --debug-dir=DIR takes "
               "names from a copy",
               m->path,
               access(m->path, R_OK) == 0 ? "is another build by now" : "cannot be read here");
    }
}

static bool write_copy(const void *of, const char *output)
{
    static const char *const none = NULL;
    const struct gt_files_elsewhere elsewhere = {.directories = &none, .refused = refused};
    const struct gt_trace *trace = of;
    struct gt_naming naming = {.last = true};
    FILE *out = fopen(output, "we");
    gt_files_set_elsewhere(&elsewhere);
    if (out)
        (trace->format->v1 ? gt_rename_v1 : gt_rename_v2)(&naming, trace, out);
    bool whole = out && fflush(out) == 0 && !ferror(out);
    if (whole)
        say_missing(&naming);
    else
        gt_say("%s: no names: %s", trace->path, strerror(errno));
    return whole;
}

void gt_later_fill_in(struct gt_trace *trace)
{
    struct gt_trace named;
    const char *path =
        says_so(trace) ? gt_copy_once(trace->path, "no names", write_copy, trace) : NULL;
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
