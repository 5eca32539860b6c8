/* See export_names.h. */
#include "export_names.h"

#include "scripts/tool/report/call_places.h"

#include "encoder/read/need.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_MAX = 2048 };

const char *gt_export_thread(const struct gt_thread_state *t)
{
    const char *name = gt_name_or_routine(t);
    return *name ? name : "thread";
}

const char *gt_export_thread_id(const struct gt_thread_state *t)
{
    static char text[PLACE_MAX];
    uint64_t id = t->thread != GT_NO_THREAD ? t->thread : t->g;
    snprintf(text, sizeof text, "%s %" PRIu64, gt_export_thread(t), id);
    return text;
}

const char *gt_export_state(const struct gt_span *span)
{
    switch (span->kind) {
    case GT_RUNNING: return "running";
    case GT_SCHED: return "runnable";
    case GT_UNSEEN: return "unseen";
    default: return gt_leaf_of(span->stack);
    }
}

const char *gt_export_place(const struct gt_callers *stack)
{
    static char text[PLACE_MAX];
    FILE *out = gt_need(fmemopen(text, sizeof text, "w"));
    gt_put_place(out, gt_leaf_of(stack), gt_site_of(stack));
    fclose(out);
    return text;
}

const char *gt_export_holder(const struct gt_wanted *wanted)
{
    return wanted && *wanted->who ? wanted->who : NULL;
}
