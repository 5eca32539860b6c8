/*
 * `gotrace why`: what a run's time went to, and what would help: the page that is read first.
 */
#include "handed.h"
#include "joins.h"
#include "page.h"

#include "scripts/tool/report/select.h"
#include "scripts/tool/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(void)
{
    puts(
        "usage: gotrace why [--from=TIME] [--to=TIME] [--task=NAME] [--thread=REGEX] "
        "[--skip=CODE]\n"
        "                   [--idle=REGEX|none] [--frames=N] [--wide] [--json] TRACE\n\n"
        "Prints what the time of a run went to, on one page: what is wrong, where that holds; the\n"
        "critical path, which is what each moment was waited for, backwards from the end through\n"
        "those who let others go on; and what would change with parts of it faster, replayed.\n\n"
        "  --from=TIME    only from there on: 1.5 (s), 300ms, since the trace began\n"
        "  --to=TIME      and up to there\n"
        "  --task=NAME    of each annotated task of that name: the usual ones and the slow ones\n"
        "  --thread=REGEX up to the end of such a thread, by its name, routine or number; of a\n"
        "                 server, the work of such threads\n"
        "  --skip=CODE    not a place: a module (libfoo.so.1), or functions by a regular "
        "expression\n"
        "  --idle=REGEX   threads that wait there wait for work; none: none do\n"
        "  --frames=N     so many callers of the program's own: a < b < c\n"
        "  --wide         names of functions as they are\n"
        "  --json         for programs");
    exit(0);
}

int gt_command_why(int argc, char **argv)
{
    static const struct option longs[] = {{"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"task", required_argument, NULL, 'k'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"idle", required_argument, NULL, GT_OPTION_IDLE},
                                          GT_SELECT_PLACE_OPTIONS,
                                          {0}};
    static struct gt_why why;
    uint64_t from = 0, to = UINT64_MAX;
    bool json = false;
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (c) {
        case 'f': from = gt_read_time("--from", optarg, NULL); break;
        case 't': to = gt_read_time("--to", optarg, NULL); break;
        case 'k': why.task = optarg; break;
        case 'j': json = true; break;
        case 'h': help(); break;
        default:
            if (!gt_select_option(c, optarg))
                return GT_EXIT_USAGE;
        }
    }
    if (optind + 1 != argc)
        gt_fail(GT_EXIT_USAGE, "why: which trace? One");
    gt_graph_read(&why.graph, argv[optind]);
    gt_handed_find(&why.graph);
    gt_joins_find(&why.graph);
    gt_why_find(&why, from, to);
    if (json)
        gt_why_print_json(&why);
    else
        gt_why_print(&why);
    return 0;
}
