/* `gotrace export`: writes a trace in the format of another tool. */
#include "export.h"

#include "scripts/tool/report/kinds.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum takes { KINDS = 1, WAKERS = 2, BY_THREAD = 4, DIFF = 8, UNENDED = 16, MIN_WIDTH = 32 };
enum { STACKS = KINDS | WAKERS | BY_THREAD | UNENDED };

static const struct format {
    const char *name, *extension;
    void (*write)(const struct gt_export *x);
    unsigned takes; /* options, by their bits */
    bool binary;
    const char *opens; /* tools that open it, for help */
} formats[] = {
    {"perfetto", ".pftrace", gt_export_perfetto, 0, true, "ui.perfetto.dev, trace_processor"},
    {"firefox", ".profile.json", gt_export_firefox, 0, false, "profiler.firefox.com"},
    {"chrome", ".json", gt_export_chrome, 0, false,
     "chrome://tracing, ui.perfetto.dev, speedscope"},
    {"pprof", ".pb.gz", gt_export_pprof, UNENDED, true, "go tool pprof, speedscope, Pyroscope"},
    {"folded", ".folded", gt_export_folded, STACKS, false, "flamegraph.pl, inferno, speedscope"},
    {"flame", ".svg", gt_export_flame, STACKS | DIFF | MIN_WIDTH, false,
     "any browser: a flame graph"},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static void help(void)
{
    puts("usage: gotrace export --to=FORMAT [options] TRACE\n\n"
         "Writes the trace for another tool:\n");
    for (int i = 0; i < FORMATS; i++)
        printf("  --to=%-9s  %s\n", formats[i].name, formats[i].opens);
    puts("\n"
         "  -o, --output=FILE  the file; -: standard output (default: the name of TRACE\n"
         "                     with the ending of the format, t.svg)\n"
         "  -h, --help         print this\n"
         "\n"
         "For folded and flame (stacks of waits, in nanoseconds):\n"
         "\n"
         "  --kind=KINDS       as for gotrace top; cpu: the CPU samples instead of waits\n"
         "  --wakers           above each stack, that of the waker, upside down\n"
         "  --by-thread        below each stack, the name of its thread\n"
         "  --unended          also waits that had not ended (for pprof, too)\n"
         "  --diff=TRACE       for flame: compare with another trace; red is more than\n"
         "                     there, blue is less\n"
         "  --min-width=PIXELS for flame: leave out narrower boxes (default: 0.15)");
    exit(0);
}

static const struct format *format_of(const char *name)
{
    for (int i = 0; name && i < FORMATS; i++) {
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    }
    gt_fail(GT_EXIT_USAGE,
            "export: --to=%s: must be perfetto, firefox, chrome, pprof, folded or flame",
            name ? name : "FORMAT");
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

struct request {
    const struct format *format;
    const char *output; /* NULL: named after the trace */
    unsigned given;     /* options, by their bits */
};

static double read_width(const char *text)
{
    char *end;
    double width = strtod(text, &end);
    if (end == text || *end || !(width >= 0.01 && width <= 1000))
        gt_fail(GT_EXIT_USAGE, "export: --min-width=%s: a number of pixels from 0.01 to 1000",
                text);
    return width;
}

static struct request read_options(int argc, char **argv, struct gt_export *x)
{
    static const struct option longs[] = {
        {"to", required_argument, NULL, 't'},   {"output", required_argument, NULL, 'o'},
        {"kind", required_argument, NULL, 'k'}, {"wakers", no_argument, NULL, 'w'},
        {"by-thread", no_argument, NULL, 'b'},  {"unended", no_argument, NULL, 'u'},
        {"diff", required_argument, NULL, 'd'}, {"min-width", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},       {0}};
    struct request r = {0};
    const char *to = NULL;
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 't': to = optarg; break;
        case 'o': r.output = optarg; break;
        case 'k':
            x->kinds = gt_read_kinds("export", optarg);
            r.given |= KINDS;
            break;
        case 'w':
            x->wakers = true;
            r.given |= WAKERS;
            break;
        case 'b':
            x->by_thread = true;
            r.given |= BY_THREAD;
            break;
        case 'u':
            x->unended = true;
            r.given |= UNENDED;
            break;
        case 'd':
            x->other = optarg;
            r.given |= DIFF;
            break;
        case 'm':
            x->narrowest = read_width(optarg);
            r.given |= MIN_WIDTH;
            break;
        case 'h': help(); break;
        default: exit(GT_EXIT_USAGE);
        }
    }
    gt_need_one_trace(argc, argv, "--to=FORMAT TRACE");
    r.format = format_of(to);
    return r;
}

static void check(const struct request *r, const struct gt_export *x)
{
    static const char *const names[] = {"--kind", "--wakers",  "--by-thread",
                                        "--diff", "--unended", "--min-width"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (r->given & ~r->format->takes & 1u << i)
            gt_fail(GT_EXIT_USAGE, "export: %s is not for --to=%s", names[i], r->format->name);
    }
    if (x->wakers && x->kinds == GT_KINDS_CPU)
        gt_fail(GT_EXIT_USAGE, "export: --wakers is about waits, --kind=cpu is not");
}

static void write_to_stdout(const struct format *format, struct gt_export *x)
{
    if (format->binary && isatty(STDOUT_FILENO))
        gt_fail(GT_EXIT_USAGE, "export: %s is binary, and no text for a terminal: -o FILE",
                format->name);
    x->file = stdout; /* main.c closes it */
    format->write(x);
}

static void write_file(const struct format *format, struct gt_export *x, const char *path)
{
    if (is_same_file(path, x->trace->path) || (x->other && is_same_file(path, x->other)))
        gt_fail(GT_EXIT_USAGE, "export: -o %s is the trace itself: name another file", path);
    x->file = gt_replacement_begin(path);
    format->write(x);
    gt_replacement_finish(x->trace->path);
    gt_say("%s: for %s", path, format->opens);
}

int gt_command_export(int argc, char **argv)
{
    struct gt_trace trace;
    struct gt_left_out left_out = {0};
    struct gt_export x = {
        .trace = &trace, .kinds = GT_KINDS_USUAL, .left_out = &left_out, .narrowest = 0.15};
    struct request r = read_options(argc, argv, &x);
    check(&r, &x);
    gt_open_trace(&trace, argv[optind]);
    const char *output = r.output ? r.output : gt_replacement_name(trace.path, r.format->extension);
    if (strcmp(output, "-") == 0)
        write_to_stdout(r.format, &x);
    else
        write_file(r.format, &x, output);
    if (left_out.waits)
        gt_say("%llu waits that last until the trace ends, %s in all, are left out: --unended",
               (unsigned long long)left_out.waits, gt_duration(left_out.ns));
    if (trace.lost)
        gt_say("%s is cut: what its last %llu bytes say is left out", trace.path,
               (unsigned long long)trace.lost);
    return 0;
}
