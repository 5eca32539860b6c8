/*
 * `gotrace why`: what a run's time went to and what would help, on one page. Users read it first.
 */
#include "begins.h"
#include "connected.h"
#include "handed.h"
#include "joins.h"
#include "page.h"
#include "questions.h"
#include "reaped.h"
#include "relock.h"
#include "cpu_samples.h"
#include "spawned.h"
#include "tokens.h"

#include "scripts/tool/report/select.h"
#include "scripts/tool/report/short_name.h"
#include "scripts/tool/fold.h"
#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(void)
{
    puts("usage: gotrace why [options] TRACE\n"
         "\n"
         "Prints on one page what limits a run: findings, such as a lock that everybody\n"
         "waits for; the critical path, which is what the run waited for at each moment,\n"
         "followed backwards from its end through the threads that ended each wait; and\n"
         "what the run would take if parts of it were faster, by replaying it.\n"
         "\n"
         "  --from=TIME     only after TIME: 1.5s or 300ms from the beginning of the trace\n"
         "  --to=TIME       only before TIME\n"
         "  --task=NAME     explain annotated tasks of that name: usual ones and slow ones\n"
         "  --thread=REGEX  end the path where such a thread ends (name, routine or\n"
         "                  number); of a server: explain the work of such threads\n"
         "  --as=WHAT       server: explain pieces of work; batch: explain why it ended\n"
         "                  no sooner (default: by what its threads did)\n"
         "  --idle=REGEX    waits in matching functions are waits for work; none: no wait\n"
         "  --skip=CODE     never a place: a module (libfoo.so.1), or functions by a\n"
         "                  regular expression\n"
         "  --frames=N      show N callers of the program's own (default: 1)\n"
         "  --wide          all findings and rows, whole names of functions\n"
         "  --json          print JSON: gotrace-json(5)\n"
         "  --timeline      with --json: also what the busiest threads did over time\n"
         "  --page=FILE     with --json: also write the page as text to FILE\n"
         "  -h, --help      print this");
    exit(0);
}

static enum gt_as read_as(const char *value)
{
    if (strcmp(value, "server") == 0)
        return GT_AS_SERVER;
    if (strcmp(value, "batch") == 0)
        return GT_AS_BATCH;
    gt_fail(GT_EXIT_USAGE, "--as=%s: must be server or batch", value);
}

/* Writes the page to a file. What prints it takes the stream `stdout`, which glibc lets be set. */
static void write_page(struct gt_why *why, const char *path)
{
    FILE *output = stdout, *file = fopen(path, "we");
    if (!file)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    stdout = file;
    gt_why_print(why);
    stdout = output;
    if (fclose(file) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
}

int gt_command_why(int argc, char **argv)
{
    static const struct option longs[] = {{"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"task", required_argument, NULL, 'k'},
                                          {"as", required_argument, NULL, 'a'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"timeline", no_argument, NULL, 'l'},
                                          {"page", required_argument, NULL, 'p'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"idle", required_argument, NULL, GT_OPTION_IDLE},
                                          GT_SELECT_PLACE_OPTIONS,
                                          {0}};
    static struct gt_why why;
    uint64_t from = 0, to = UINT64_MAX;
    const char *page = NULL;
    bool json = false;
    for (int c; (c = gt_option(argc, argv, "h", longs)) != -1;) {
        switch (c) {
        case 'f': from = gt_read_time("--from", optarg, NULL); break;
        case 't': to = gt_read_time("--to", optarg, NULL); break;
        case 'k': why.task = optarg; break;
        case 'a': why.as = read_as(optarg); break;
        case 'j': json = true; break;
        case 'l': why.timeline = true; break;
        case 'p': page = optarg; break;
        case 'h': help(); break;
        default:
            if (!gt_select_option(c, optarg))
                return GT_EXIT_USAGE;
        }
    }
    gt_need_one_trace(argc, argv, "TRACE");
    if (why.timeline && (!json || why.task))
        gt_fail(GT_EXIT_USAGE, "why: --timeline is for --json, without --task");
    if (page && !json)
        gt_fail(GT_EXIT_USAGE, "why: --page is for --json");
    if (!json && !gt_wide_names)
        gt_fold_output();
    gt_graph_read(&why.graph, argv[optind]);
    gt_samples_sort(&why.graph);
    gt_relock_find_of_files(&why.graph);
    gt_handed_find(&why.graph);
    gt_connected_find(&why.graph);
    gt_relock_find(&why.graph);
    gt_tokens_find(&why.graph);
    gt_reaped_find(&why.graph);
    gt_spawned_find(&why.graph);
    gt_joins_find(&why.graph);
    gt_cpu_use_find(&why.graph);
    gt_begins_settle(&why.graph);
    gt_questions_find(&why.graph);
    gt_why_find(&why, from, to);
    if (page)
        write_page(&why, page);
    if (json)
        gt_why_print_json(&why);
    else
        gt_why_print(&why);
    return 0;
}
