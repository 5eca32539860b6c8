/* `gotrace convert`: writes a trace in another format. */
#include "rewrite.h"

#include "scripts/tool/report/reading.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

static void help(void)
{
    puts("usage: gotrace convert [--format=FORMAT] [--holds] TRACE -o FILE\n\n"
         "Writes the trace in another format, or with lock holds as tasks; needs --format\n"
         "or --holds. What the new format cannot say is left out.\n\n"
         "  --format=FORMAT    the new format (with --holds: that of TRACE); one of");
    gt_help_wrap("", 21, gt_format_names());
    puts("  --holds            show how long locks were held as tasks, in Go's viewer\n"
         "  -o, --output=FILE  the new trace\n"
         "  -h, --help         print this");
    exit(0);
}

/* Information that formats older than Go 1.since cannot represent. */
struct thing {
    int since;
    const char *what;
};

static const struct thing of_ours[] = {
    {7, "why threads wait when it ends"},
    {8, "names that threads gave themselves"},
    {11, "annotations and logs about locks"},
    {19, "CPU samples"},
    {22, "the reasons of yields"},
    {25, "the time of day"},
    {0, NULL},
};

static const struct thing of_go[] = {
    {8, "labels"},
    {9, "who helps to mark"},
    {11, "tasks, regions and logs"},
    {19, "CPU samples"},
    {21, "pauses but those to collect"},
    {22, "reasons of waits but for channels, locks, network and sleep"},
    {23, "stacks of waits that begin before the trace, coroutines until they run"},
    {25, "the time of day"},
    {0, NULL},
};

/* Prints what the new format cannot represent and the old one can. */
static void say_loss(const struct gt_rewrite *r, const struct gt_format *from)
{
    char lost[512] = "";
    size_t n = 0;
    for (const struct thing *t = r->of_go ? of_go : of_ours; t->what; t++) {
        if (r->format->minor < t->since && from->minor >= t->since)
            n += (size_t)snprintf(lost + n, sizeof lost - n, "%s%s", n ? ", " : "", t->what);
    }
    if (n)
        gt_say("%s: %s cannot say: %s", r->output, r->format->name, lost);
}

int gt_command_convert(int argc, char **argv)
{
    static const struct option longs[] = {{"format", required_argument, NULL, 'f'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"holds", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct gt_rewrite r = {.to = UINT64_MAX};
    const char *format = NULL;
    struct gt_trace trace;
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'f': format = optarg; break;
        case 'o': r.output = optarg; break;
        case 'l': r.holds = true; break;
        case 'h': help(); break;
        default: return GT_EXIT_USAGE;
        }
    }
    gt_need_one_trace(argc, argv, "[--format=FORMAT] [--holds] TRACE -o FILE");
    if (!r.output || !(format || r.holds))
        gt_fail(GT_EXIT_USAGE,
                "convert needs %s: gotrace convert [--format=FORMAT] [--holds] TRACE -o FILE",
                r.output ? "--format or --holds" : "-o FILE");
    r.input = argv[optind];
    r.format = format ? gt_format_find(format) : NULL;
    if (format && !r.format)
        gt_fail(GT_EXIT_USAGE, "--format=%s: must be %s", format, gt_format_names());
    gt_open_trace(&trace, r.input);
    gt_rewrite(&r);
    if (r.format)
        say_loss(&r, trace.format);
    gt_rewrite_say_experiments(&r);
    return 0;
}
