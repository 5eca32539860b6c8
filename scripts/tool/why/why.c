/*
 * `gotrace why`: what a run's time went to, and what would help: the page that is read first.
 */
#include "page.h"

#include "preload/options.h"
#include "scripts/tool/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(void)
{
    puts(
        "usage: gotrace why [--from=TIME] [--to=TIME] [--task=NAME] [--json] TRACE\n\n"
        "Prints what the time of a run went to, on one page: what is wrong, where that holds; the\n"
        "critical path, which is what each moment was waited for, backwards from the end through\n"
        "those who let others go on; and what would change with parts of it faster, replayed.\n\n"
        "  --from=TIME    only from there on: 1.5 (s), 300ms, since the trace began\n"
        "  --to=TIME      and up to there\n"
        "  --task=NAME    of each annotated task of that name: the usual ones and the slow ones\n"
        "  --json         for programs");
    exit(0);
}

static uint64_t read_time(const char *option, const char *text)
{
    uint64_t ns;
    if (!gt_options_time(text, &ns))
        gt_fail(GT_EXIT_USAGE, "why: --%s=%s: it is a time since the beginning, as 1.5 or 300ms",
                option, text);
    return ns;
}

int gt_command_why(int argc, char **argv)
{
    static const struct option longs[] = {
        {"from", required_argument, NULL, 'f'}, {"to", required_argument, NULL, 't'},
        {"task", required_argument, NULL, 'k'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},       {0}};
    static struct gt_why why;
    uint64_t from = 0, to = UINT64_MAX;
    bool json = false;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'f': from = read_time("from", optarg); break;
        case 't': to = read_time("to", optarg); break;
        case 'k': why.task = optarg; break;
        case 'j': json = true; break;
        case 'h': help(); break;
        default: return GT_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "why: which trace? One");
    gt_graph_read(&why.graph, argv[optind]);
    gt_why_find(&why, from, to);
    if (json)
        gt_why_print_json(&why);
    else
        gt_why_print(&why);
    return 0;
}
