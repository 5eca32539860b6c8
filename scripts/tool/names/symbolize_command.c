/*
 * `gotrace symbolize`: adds names to a trace whose host had no debug information. Strings that no
 * event uses say which module each address was in (symbolize/elf/modules.h). The tables of stacks
 * and strings are written anew; everything else is copied byte for byte.
 */
#include "naming.h"

#include "scripts/tool/ask.h"
#include "scripts/tool/help.h"
#include "scripts/tool/package.h"
#include "scripts/tool/recover/recover.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/tool.h"
#include "scripts/tool/written.h"
#include "symbolize/elf/files.h"
#include "symbolize/made/perf_map.h"
#include "symbolize/symbolize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *directories[64]; /* ends with NULL */
    size_t n;
    bool debuginfod;
    const char *perf_map; /* NULL: none */
    const char *output;
} options;

/* Files -------------------------------------------------------------------------------------- */

static void build_id_of(const struct gt_module *m, char text[65])
{
    for (int i = 0; i < m->build_id_len; i++)
        snprintf(text + 2 * i, 3, "%02x", m->build_id[i]);
    if (!m->build_id_len)
        strcpy(text, "none");
}

static void refused(const struct gt_module *m, const char *path)
{
    char id[65];
    build_id_of(m, id);
    gt_say("%s is not used: its build ID is not that of %s (%s)", path, m->path, id);
}

/* What debuginfod-find said when it had no file: "Server query failed: No route to host". */
static char not_fetched[512];

/* Asks debuginfod-find, which knows the servers and caches their files. */
static const char *fetch(const struct gt_module *m)
{
    static char path[PATH_MAX];
    char id[65];
    build_id_of(m, id);
    const char *const argv[] = {"debuginfod-find", "debuginfo", id, NULL};
    int status = gt_ask_errors(argv, path, sizeof path);
    if (status == 0 && *path == '/')
        return path;
    snprintf(not_fetched, sizeof not_fetched, "%.500s",
             status < 0 ? "it is not installed"
             : *path    ? path
                        : "it has no file");
    return NULL;
}

/* Reads the whole map as valid for all of the trace's time, as the map has no times. */
static void read_perf_map(struct gt_made_functions *made)
{
    struct gt_perf_map map = {.overlong = false};
    struct stat st;
    char *path = realpath(options.perf_map, NULL);
    if (!path || stat(path, &st) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", options.perf_map, strerror(errno));
    while (!gt_perf_map_read(&map, path, st.st_uid, made, 0))
        ;
    if (!made->n)
        gt_fail(GT_EXIT_FAILED, "%s: no line describes a function", options.perf_map);
    free(path);
}

/* The command -------------------------------------------------------------------------------- */

/* Returns the exit status: 1 if no server could be asked and nothing was named. */
static int report(const char *output, const struct gt_naming *naming)
{
    for (const struct gt_named_module *m = naming->modules; m; m = m->next) {
        char id[65];
        build_id_of(m->module, id);
        if (m->without_line && !gt_symbolize_has_files(naming->symbolizer, 1, m->module->lo, true))
            gt_say("%s: no debug information; its build ID is %s", m->module->path, id);
    }
    if (*not_fetched)
        gt_say("debuginfod-find: %s", not_fetched);
    gt_say("%s: %llu addresses named", output, (unsigned long long)naming->named);
    return *not_fetched && !naming->named ? GT_EXIT_FAILED : 0;
}

static void help(void)
{
    puts("usage: gotrace symbolize [options] TRACE\n"
         "\n"
         "Adds the functions, files and lines that the recorded host had no debug\n"
         "information for. A debug file must have the build ID of what was recorded.\n"
         "\n"
         "  --debug-dir=DIR    look in DIR: DIR/.build-id/..., or DIR/NAME(.debug) for the\n"
         "                     program or library NAME; may be given several times\n"
         "  --debuginfod       ask the servers of $DEBUGINFOD_URLS, by debuginfod-find(1)\n"
         "  --perf-map=FILE    names of code made at run time: /tmp/perf-PID.map of the\n"
         "                     recorded process\n"
         "  -o, --output=FILE  the new trace (default: replace TRACE)\n"
         "  -h, --help         print this");
    exit(0);
}

static void read_options(int argc, char **argv)
{
    static const struct option longs[] = {{"debug-dir", required_argument, NULL, 'd'},
                                          {"debuginfod", no_argument, NULL, 's'},
                                          {"perf-map", required_argument, NULL, 'p'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    enum { MAX = sizeof options.directories / sizeof *options.directories - 1 };
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'd':
            if (options.n == MAX)
                gt_fail(GT_EXIT_USAGE, "symbolize: at most %d times --debug-dir", MAX);
            if (access(optarg, R_OK | X_OK) != 0)
                gt_fail(GT_EXIT_FAILED, "%s: %s", optarg, strerror(errno));
            options.directories[options.n++] = optarg;
            break;
        case 's': options.debuginfod = true; break;
        case 'p': options.perf_map = optarg; break;
        case 'o': options.output = optarg; break;
        case 'h': help(); break;
        default: exit(GT_EXIT_USAGE);
        }
    }
    gt_need_one_trace(argc, argv, "TRACE");
    const char *servers = options.debuginfod ? gt_debuginfod_setting() : "";
    if (*servers)
        gt_fail(GT_EXIT_USAGE, "symbolize: no servers to ask: %sgotrace symbolize --debuginfod %s",
                servers, gt_to_type(argv[optind]));
}

int gt_command_symbolize(int argc, char **argv)
{
    struct gt_trace trace;
    struct gt_naming naming = {0};
    read_options(argc, argv);
    const char *found = gt_recovered(argv[optind]), *why = gt_trace_open(&trace, found);
    if (found != argv[optind] && !options.output)
        gt_fail(GT_EXIT_USAGE, "symbolize: a black box stays as it is: where to, with -o?");
    if (why)
        gt_fail(GT_EXIT_FAILED, "%s: %s", argv[optind], why);
    if (trace.format->v1 && gt_v1_global_order(trace.format))
        gt_fail(GT_EXIT_FAILED, "%s: a go1.5 trace has no place for what this needs to know",
                trace.path);
    struct gt_files_elsewhere elsewhere = {.directories = options.directories, .refused = refused};
    if (options.debuginfod)
        elsewhere.fetch = fetch;
    gt_files_set_elsewhere(&elsewhere);
    if (options.perf_map)
        read_perf_map(&naming.made);
    const char *output = options.output ? options.output : trace.path;
    FILE *file = gt_replacement_begin(output);
    if (trace.format->v1)
        gt_rename_v1(&naming, &trace, file);
    else
        gt_rename_v2(&naming, &trace, file);
    if (!naming.modules)
        gt_say("%s says nothing of modules: it is not by this version of libgotrace", trace.path);
    if (fflush(file) == 0) /* else gt_replacement_finish reports the error */
        gt_written_check(gt_replacement_temporary(), output, (char *[]){argv[optind]}, 1);
    gt_replacement_finish(trace.path);
    return report(output, &naming);
}
