/* `gotrace merge`: writes the traces of several processes or hosts on one timeline. */
#include "merging.h"

#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

static void help(void)
{
    puts("usage: gotrace merge [options] TRACE... -o FILE\n\n"
         "Puts traces of several processes on one timeline, by the clock that all\n"
         "processes share since the host booted; of several hosts, by the time of day.\n"
         "Threads are called PROCESS/THREAD.\n\n"
         "  --format=FORMAT    the new format (default: that of the first one); one of");
    gt_help_wrap("", 21, gt_format_names());
    puts("  --mark=TEXT        for several hosts: each trace has a log event TEXT, and the\n"
         "                     first of each are at the same moment\n"
         "  -o, --output=FILE  the new trace\n"
         "  -h, --help         print this");
    exit(0);
}

int gt_command_merge(int argc, char **argv)
{
    static const struct option longs[] = {{"format", required_argument, NULL, 'f'},
                                          {"mark", required_argument, NULL, 'm'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct gt_merging m = {0};
    const char *format = NULL;
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        switch (c) {
        case 'f': format = optarg; break;
        case 'm': m.mark = optarg; break;
        case 'o': m.output = optarg; break;
        case 'h': help(); break;
        default: return GT_EXIT_USAGE;
        }
    }
    m.inputs = argv + optind;
    m.n = (size_t)(argc - optind);
    if (!m.n || !m.output)
        gt_fail(GT_EXIT_USAGE, "merge needs %s: gotrace merge [options] TRACE... -o FILE",
                m.n ? "-o FILE" : "a trace");
    if (m.n > GT_MERGED_MAX)
        gt_fail(GT_EXIT_USAGE, "merge: %zu traces are more than %d", m.n, GT_MERGED_MAX);
    m.format = format ? gt_format_find(format) : NULL;
    if (format && !m.format)
        gt_fail(GT_EXIT_USAGE, "--format=%s: must be %s", format, gt_format_names());
    gt_merging_do(&m);
    return 0;
}
