/*
 * A frame in a module without symbols is called after its offset, "pigz+0x11322": the report says
 * why, and where to get names.
 */
#include "nameless.h"

#include "table.h"
#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the module's name that such a name begins with, or 0. */
static int module_of(const char *func)
{
    const char *plus = strrchr(func, '+');
    if (!plus || plus == func || strncmp(plus, "+0x", 3) != 0)
        return 0;
    for (const char *c = plus + 3; *c; c++) {
        if (!isxdigit((unsigned char)*c))
            return 0;
    }
    return (int)(plus - func);
}

void gt_nameless_add(struct gt_nameless *these, const char *func, uint64_t weight)
{
    int length = module_of(func);
    unsigned i = 0;
    these->all += weight;
    if (!length)
        return;
    while (i < these->n && (these->module[i].length != length ||
                            strncmp(these->module[i].name, func, (size_t)length) != 0))
        i++;
    if (i == sizeof these->module / sizeof *these->module)
        return;
    if (i == these->n) {
        these->n++;
        these->module[i].name = func;
        these->module[i].length = length;
    }
    these->module[i].weight += weight;
}

static bool is_told(const struct gt_nameless *these, unsigned module)
{
    return these->module[module].weight >= these->all / 10;
}

static void put_modules(const struct gt_nameless *these)
{
    gt_json_open("nameless", '[');
    for (unsigned i = 0; i < these->n; i++) {
        if (!is_told(these, i))
            continue;
        char *name = gt_need(strndup(these->module[i].name, (size_t)these->module[i].length));
        gt_json_text(NULL, name);
        free(name);
    }
    gt_json_close(']');
}

static void print_modules(const struct gt_nameless *these, const struct gt_trace *trace)
{
    const char *before = "\nNo names of functions in ";
    if (gt_v1_global_order(trace->format)) /* that one cannot be given names later */
        return;
    for (unsigned i = 0; i < these->n; i++) {
        if (!is_told(these, i))
            continue;
        printf("%s%.*s", before, these->module[i].length, these->module[i].name);
        before = ", ";
    }
    if (*before == ',')
        printf(
            ": no symbols of it were there.\nInstall its debug symbols (packages called -dbgsym or "
            "-debuginfo), then: gotrace symbolize %s\nOr have them fetched: gotrace symbolize "
            "--debuginfod %s\n",
            gt_printable(trace->path), gt_printable(trace->path));
}

void gt_nameless_explain(const struct gt_nameless *these, const struct gt_trace *trace)
{
    if (gt_report_json)
        put_modules(these);
    else
        print_modules(these, trace);
}
