/* `gotrace merge`: traces of several processes, or hosts, on one timeline. */
#include "merging.h"

#include "scripts/tool/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void help(void)
{
    printf(
        "usage: gotrace merge [options] TRACE... -o FILE\n\n"
        "Puts traces of several processes on one timeline: by the clock that all processes of a\n"
        "boot share, else by the time of day. Threads are called process/thread.\n\n"
        "  --format=FORMAT    of the new trace: %s;\n"
        "                     otherwise the first one's\n"
        "  --mark=TEXT        of traces of several hosts: a log of that text stands in each of\n"
        "                     them, where they tell it first, at the same moment\n"
        "  -o, --output=FILE  the new trace\n",
        gt_format_names());
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
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
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
        gt_fail(GT_EXIT_USAGE, "merge: gotrace merge [options] TRACE... -o FILE");
    if (m.n > GT_MERGED_MAX)
        gt_fail(GT_EXIT_USAGE, "merge: %zu traces are more than %d", m.n, GT_MERGED_MAX);
    m.format = format ? gt_format_find(format) : NULL;
    if (format && !m.format)
        gt_fail(GT_EXIT_USAGE, "--format=%s: it is %s", format, gt_format_names());
    gt_merging_do(&m);
    return 0;
}
