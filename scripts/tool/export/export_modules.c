/* See export_modules.h. */
#include "export_modules.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <string.h>

GT_ORDER(by_address, struct gt_export_module, GT_UP(its.lo))

/* The path without a second name, which may follow the program's behind another slash. */
static const char *path_of(const char *text)
{
    const char *other = *text == '/' ? strstr(text, "//") : NULL;
    return gt_need(other ? strndup(text, (size_t)(other - text)) : strdup(text));
}

static void learn(struct gt_export_modules *m, const struct gt_trace *trace)
{
    size_t before = m->n;
    for (; m->told < trace->n_remarks; m->told++) {
        struct gt_module its;
        const char *path = gt_modules_parse(trace->remarks[m->told], &its);
        if (!path || its.hi <= its.lo)
            continue;
        its.path = path_of(path);
        struct gt_export_module *fresh = GT_ADD(m->at, m->n);
        *fresh = (struct gt_export_module){.its = its, .id = m->n};
    }
    if (m->n > before)
        qsort(m->at, m->n, sizeof *m->at, by_address);
}

const struct gt_export_module *gt_export_module_at(struct gt_export_modules *m,
                                                   const struct gt_trace *trace, uint64_t pc)
{
    size_t first = 0, end;
    learn(m, trace);
    for (end = m->n; first < end;) { /* the last module that does not begin behind pc */
        size_t middle = first + (end - first) / 2;
        if (m->at[middle].its.lo <= pc)
            first = middle + 1;
        else
            end = middle;
    }
    return first && pc < m->at[first - 1].its.hi ? &m->at[first - 1] : NULL;
}
