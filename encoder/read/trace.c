/* See trace.h. */
#include "trace.h"

#include "need.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const v2_kinds[GT_EVENTS_END] = {
#define GT_EVENT(number, id, name, args) [number] = name,
#include "encoder/format/format_v2.def"
#undef GT_EVENT
};

static const char *const v1_kinds[GT_V1_EVENTS_END] = {
#define GT_EVENT(number, id, name, ...) [number] = name,
#include "encoder/format/format_v1.def"
#undef GT_EVENT
};

const char *gt_trace_kind(const struct gt_format *format, unsigned type)
{
    if (format->v1)
        return type < GT_V1_EVENTS_END ? v1_kinds[type] : NULL;
    return type < GT_EVENTS_END ? v2_kinds[type] : NULL;
}

#define NO_TRACE "it is not a Go execution trace"

/* What a file is that is not a trace: by its first bytes, or because it is empty or not regular. */
static const char *what_instead(const struct gt_bytes *bytes, const char *path)
{
    static const struct {
        const char *begin, *what;
    } known[] = {
        {"\x1f\x8b", NO_TRACE ": it is compressed; gunzip unpacks it"},
        {"\x28\xb5\x2f\xfd", NO_TRACE ": it is compressed; unzstd unpacks it"},
        {"\xfd"
         "7zXZ",
         NO_TRACE ": it is compressed; unxz unpacks it"},
        {"SQLite format 3", NO_TRACE ": it is a database, as gotrace sql makes them"},
        {"go 1.", "it is a trace by a Go that is not known here"},
    };
    struct stat st;
    if (!bytes->p && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return NO_TRACE ": it is no regular file";
    if (!bytes->p && stat(path, &st) == 0 && !st.st_size)
        return NO_TRACE ": it is empty; a program that was killed early, or that has only begun, "
                        "has written nothing yet (GOTRACE_LIVE=on keeps that)";
    for (size_t i = 0; bytes->p && i < sizeof known / sizeof *known; i++) {
        if (memcmp(bytes->p, known[i].begin, strlen(known[i].begin)) == 0)
            return known[i].what;
    }
    return NO_TRACE " of a version known here; gotrace -o FILE -- PROGRAM records one";
}

const char *gt_trace_open(struct gt_trace *trace, const char *path)
{
    *trace = (struct gt_trace){.path = path};
    struct gt_bytes bytes = {0};
    const char *why = gt_trace_map(&bytes, path, GT_HEADER_BYTES);
    if (why)
        return why;
    trace->base = bytes.p;
    trace->size = trace->file_bytes = gt_bytes_left(&bytes);
    trace->format = trace->base ? gt_format_of_header(trace->base) : NULL;
    return trace->format ? NULL : what_instead(&bytes, path);
}

struct gt_reader *gt_trace_begin(struct gt_trace *trace, const struct gt_audience *audience)
{
    struct gt_reader *r = gt_need(calloc(1, sizeof *r));
    r->trace = trace;
    r->audience = audience;
    if (trace->format->v1)
        gt_trace_begin_v1(r);
    else
        gt_trace_begin_v2(r);
    return r;
}

bool gt_trace_next(struct gt_reader *r, uint64_t *ns)
{
    return r->trace->format->v1 ? gt_order_next(r, ns) : gt_trace_next_v2(r, ns);
}

void gt_trace_tell(struct gt_reader *r)
{
    gt_order_tell(r);
}

bool gt_trace_end(struct gt_reader *r)
{
    bool damaged = *r->trace->damage;
    if (r->trace->format->v1)
        gt_trace_end_v1(r);
    else
        gt_trace_end_v2(r);
    gt_account_rows_free(&r->accounts);
    gt_memo_free(&r->by_id);
    gt_memo_free(&r->texts);
    gt_memo_free(&r->stacks);
    free(r->source); /* not the streams, to which the audience may refer */
    free(r->queue.at);
    free(r->sample);
    free(r);
    return !damaged;
}

bool gt_trace_read(struct gt_trace *trace, const struct gt_audience *audience)
{
    uint64_t ns;
    struct gt_reader *r = gt_trace_begin(trace, audience);
    while (gt_trace_next(r, &ns))
        gt_trace_tell(r);
    return gt_trace_end(r);
}
