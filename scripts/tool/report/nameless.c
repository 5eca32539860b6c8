/* See nameless.h. */
#include "nameless.h"

#include "encoder/base/path.h"
#include "scripts/tool/json.h"
#include "scripts/tool/package.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"
#include "symbolize/elf/image.h"
#include "symbolize/elf/modules.h"

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

static bool is_named(const char *path, const char *name, int length)
{
    const char *its = gt_path_name(path);
    return strncmp(its, name, (size_t)length) == 0 && !its[length];
}

/* Whether the build that ran is on this machine, and in no container. */
static bool is_here(const char *file, const struct gt_module *m)
{
    struct gt_image image;
    if (gt_image_open(&image, file) != 0)
        return false;
    bool same = gt_image_is(&image, m->build_id, m->build_id_len);
    gt_image_close(&image);
    return same;
}

/* The file of a module of the process that was looked at; in new memory. NULL: it is not here. */
static char *file_now(const char *name, int length)
{
    for (const struct gt_module *m = gt_modules_last(); m; m = m->next) {
        const char *file = gt_module_name(m); /* m->path may lead to it through /proc */
        if (is_named(file, name, length) && is_here(file, m))
            return gt_need(strdup(file));
    }
    return NULL;
}

/*
 * The file of a module of the trace; in new memory, or NULL. Of a trace without descriptions of
 * modules: the file at the path that functions of the report have.
 */
static char *file_then(const struct gt_trace *trace, const char *name, int length, const char *told)
{
    bool any = false;
    for (size_t i = 0; i < trace->n_remarks; i++) {
        struct gt_module m;
        const char *path = gt_modules_parse(trace->remarks[i], &m);
        if (!path)
            continue;
        const char *called = m.is_program ? strstr(path, "//") : path;
        char *file = gt_need(m.is_program ? strndup(path, (size_t)(called - path)) : strdup(path));
        any = true;
        if ((is_named(file, name, length) || is_named(called, name, length)) && is_here(file, &m))
            return file;
        free(file);
    }
    return !any && access(told, F_OK) == 0 ? gt_need(strdup(told)) : NULL;
}

/*
 * Writes the packages with the names of modules, "liblzma5-dbgsym, xz-utils-dbgsym"; and to
 * `others` the modules on this machine that are of no package.
 */
static void add_packages(FILE *text, const struct gt_nameless *these, FILE *others,
                         const struct gt_trace *trace)
{
    char *package[sizeof these->module / sizeof *these->module];
    unsigned n = 0, without = 0;
    for (unsigned i = 0; i < these->n; i++) {
        const char *name = these->module[i].name;
        int length = these->module[i].length;
        const char *told = these->module[i].file;
        char *file = !is_told(these, i) ? NULL
                     : trace            ? file_then(trace, name, length, told)
                                        : file_now(name, length);
        const char *its = file ? gt_debug_package_of(file) : "";
        unsigned same = 0;
        if (file && !*its)
            fprintf(others, "%s%.*s", without++ ? ", " : "", length, name);
        free(file);
        while (same < n && strcmp(package[same], its) != 0)
            same++;
        if (!*its || same < n)
            continue;
        fprintf(text, "%s%s", n ? ", " : "", its);
        package[n++] = gt_need(strdup(its));
    }
    for (unsigned i = 0; i < n; i++)
        free(package[i]);
}

/* Whether the trace can be given names later. */
static bool is_open_to_names(const struct gt_trace *trace)
{
    return trace && !gt_v1_global_order(trace->format);
}

/* How to install the packages and to have their names in the report. */
static void explain_packages(FILE *text, const char *packages, const struct gt_trace *trace)
{
    const char *path = trace ? gt_to_type(trace->path) : "";
    const char *source = strstr(packages, "-dbgsym") ? gt_debug_source() : "";
    bool later = is_open_to_names(trace);
    fprintf(text, "Install %s, then%s%s\n",
            *packages ? packages : "their debug symbols (packages called -dbgsym or -debuginfo)",
            later   ? ": gotrace symbolize "
            : trace ? " record again."
                    : " look again.",
            later ? path : "");
    if (*source)
        fprintf(text, "First add their archive to the sources of apt: %s\n", source);
    if (later)
        fprintf(text, "Or fetch the names from a server: %sgotrace symbolize --debuginfod %s\n",
                gt_debuginfod_setting(), path);
}

/* A program of the user's own: built again, it is another one than the trace's. */
static void explain_others(FILE *text, const char *others, const struct gt_trace *trace)
{
    fprintf(text, "Build %s with -g, do not strip it, and %s again.\n", others,
            trace ? "record" : "run it");
    if (is_open_to_names(trace))
        fprintf(text,
                "Or, where DIR has that file as it was before it was stripped: gotrace symbolize "
                "--debug-dir=DIR %s\n",
                gt_to_type(trace->path));
}

char *gt_nameless_text(const struct gt_nameless *these, const char *of,
                       const struct gt_trace *trace)
{
    enum { LEAST_PERCENT = 10 };
    char *its = NULL, *packages = NULL, *others = NULL;
    size_t size = 0;
    if (percent(these) < LEAST_PERCENT)
        return NULL;
    FILE *package_list = gt_need(open_memstream(&packages, &size));
    FILE *other_list = gt_need(open_memstream(&others, &size));
    add_packages(package_list, these, other_list, trace);
    fclose(package_list);
    fclose(other_list);
    FILE *text = gt_need(open_memstream(&its, &size));
    fprintf(text, "%" PRIu64 " %% of the %s functions without names (", percent(these), of);
    add_modules(text, these);
    fputs(").\n", text);
    if (*packages || !*others)
        explain_packages(text, packages, trace);
    if (*others)
        explain_others(text, others, trace);
    free(packages);
    free(others);
    fclose(text);
    return gt_need(its);
}

void gt_nameless_print(const struct gt_nameless *these, const char *of,
                       const struct gt_trace *trace)
{
    char *text = gt_nameless_text(these, of, trace);
    if (text)
        printf("\n%s", text);
    free(text);
}
