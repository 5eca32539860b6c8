/* See nameless.h. */
#include "nameless.h"

#include "scripts/tool/json.h"
#include "scripts/tool/package.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of the module's name in a name such as "pigz+0x11322"; 0: it is no such name. */
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

void gt_nameless_add(struct gt_nameless *these, const char *func, const char *file, uint64_t weight)
{
    int length = module_of(func);
    unsigned i = 0;
    these->all += weight;
    if (!length)
        return;
    these->without += weight;
    while (i < these->n && (these->module[i].length != length ||
                            strncmp(these->module[i].name, func, (size_t)length) != 0))
        i++;
    if (i == sizeof these->module / sizeof *these->module)
        return;
    if (i == these->n) {
        these->n++;
        these->module[i].name = func;
        these->module[i].length = length;
        these->module[i].file = "";
    }
    if (*file == '/')
        these->module[i].file = file;
    these->module[i].weight += weight;
}

/* Whether so much of the report is in the module that its name is told. */
static bool is_told(const struct gt_nameless *these, unsigned module)
{
    enum { LEAST_PART = 20 };
    return these->module[module].weight >= these->all / LEAST_PART;
}

static uint64_t percent(const struct gt_nameless *these)
{
    return these->all ? (uint64_t)(100.0 * (double)these->without / (double)these->all + 0.5) : 0;
}

void gt_nameless_json(const struct gt_nameless *these)
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
    gt_json_number("nameless_percent", percent(these));
}

static void add_modules(FILE *text, const struct gt_nameless *these)
{
    unsigned told = 0;
    for (unsigned i = 0; i < these->n; i++) {
        if (is_told(these, i))
            fprintf(text, "%s%.*s", told++ ? ", " : "", these->module[i].length,
                    these->module[i].name);
    }
    if (told < these->n)
        fputs(told ? " and others" : "several modules", text);
}

/* "liblzma5-dbgsym, xz-utils-dbgsym": of the modules whose packages are known here. */
static void add_packages(FILE *text, const struct gt_nameless *these)
{
    const char *debug = access("/usr/bin/dpkg", X_OK) ? "debuginfo" : "dbgsym";
    char *package[sizeof these->module / sizeof *these->module];
    unsigned n = 0;
    for (unsigned i = 0; i < these->n; i++) {
        const char *its = is_told(these, i) ? gt_package_of(these->module[i].file) : "";
        unsigned same = 0;
        while (same < n && strcmp(package[same], its) != 0)
            same++;
        if (!*its || same < n)
            continue;
        fprintf(text, "%s%s-%s", n ? ", " : "", its, debug);
        package[n++] = gt_need(strdup(its));
    }
    if (!n)
        fputs("their debug symbols (packages called -dbgsym or -debuginfo; a program of your own: "
              "build it with -g)",
              text);
    while (n)
        free(package[--n]);
}

char *gt_nameless_text(const struct gt_nameless *these, const char *of,
                       const struct gt_trace *trace)
{
    enum { LEAST_PERCENT = 10 };
    char *its = NULL;
    size_t size = 0;
    if (percent(these) < LEAST_PERCENT)
        return NULL;
    FILE *text = gt_need(open_memstream(&its, &size));
    fprintf(text, "%" PRIu64 " %% of the %s is in functions without names (", percent(these), of);
    add_modules(text, these);
    fputs(").\nInstall ", text);
    add_packages(text, these);
    if (gt_v1_global_order(trace->format)) /* this format cannot be given names later */
        fputs(", then record again.\n", text);
    else
        fprintf(text,
                ", then: gotrace symbolize %s\nOr have them fetched: gotrace symbolize "
                "--debuginfod %s\n",
                gt_to_type(trace->path), gt_to_type(trace->path));
    fclose(text);
    return gt_need(its);
}
