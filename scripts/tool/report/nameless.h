/* Which modules have no names for what a report shows. */
#ifndef GOTRACE_TOOL_NAMELESS_H
#define GOTRACE_TOOL_NAMELESS_H

#include "encoder/read/trace.h"

struct gt_nameless {
    uint64_t all;
    unsigned n;
    struct {
        const char *name;
        int length;
        uint64_t weight;
    } module[16];
};

/* One function that is shown, and how much of the report it is. */
void gt_nameless_add(struct gt_nameless *these, const char *func, uint64_t weight);

/* Where names come from, if modules have none for a tenth of the report or more. */
void gt_nameless_explain(const struct gt_nameless *these, const struct gt_trace *trace);

#endif
