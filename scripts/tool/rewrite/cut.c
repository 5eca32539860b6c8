/* `gotrace cut`: writes a part of a trace, by time or by threads, as a trace of its own. */
#include "around.h"
#include "rewrite.h"

#include "scripts/tool/help.h"
#include "scripts/tool/tool.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_MARGIN_NS = 10000000, MARGIN_PART = 10 };

static void help(void)
{
    puts("usage: gotrace cut [options] TRACE -o FILE\n"
         "\n"
         "Writes a part of a trace, in the same format. The part begins and ends exactly\n"
         "at the given times, and tells at its beginning what each thread does, which\n"
         "locks it holds and how it is called.\n"
         "\n"
         "  --from=TIME        1.5s or 200ms from the beginning of the trace; -200ms: from\n"
         "                     its end (default: the beginning)\n"
         "  --to=TIME          the same (default: the end)\n"
         "  --around=EVENT     around longest (the longest wait), log:TEXT, or task:NAME\n"
         "                     (the slowest task)\n"
         "  --margin=TIME      time before and after EVENT (default: a tenth of its\n"
         "                     length, at least 10ms)\n"
         "  --threads=REGEX    only threads whose name, routine or number matches\n"
         "  --thorough         of a large trace: search all that is before the part for\n"
         "                     names, tasks and regions\n"
         "  -o, --output=FILE  the new trace\n"
         "  -h, --help         print this");
    exit(0);
}

static void go_around(struct gt_rewrite *r, const char *what, const char *margin)
{
    uint64_t from, to, more;
    gt_around_find(r->input, what, &from, &to);
    more = (to - from) / MARGIN_PART;
    more = margin                   ? gt_read_time("--margin", margin, NULL)
           : more < LEAST_MARGIN_NS ? LEAST_MARGIN_NS
                                    : more;
    r->from = from > more ? from - more : 0;
    r->to = to + more;
    gt_say("%s is from %s to %s", what, gt_duration(from), gt_duration(to));
}

static regex_t *compile(const char *text)
{
    static regex_t pattern;
    char why[128];
    int error = regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB);
    if (!error)
        return &pattern;
    regerror(error, &pattern, why, sizeof why);
    gt_fail(GT_EXIT_USAGE, "--threads=%s: %s", text, why);
}

int gt_command_cut(int argc, char **argv)
{
    static const struct option longs[] = {{"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"around", required_argument, NULL, 'a'},
                                          {"margin", required_argument, NULL, 'm'},
                                          {"threads", required_argument, NULL, 'r'},
                                          {"thorough", no_argument, NULL, 'l'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct gt_rewrite r = {.to = UINT64_MAX};
    const char *around = NULL, *margin = NULL;
    bool times = false;
    for (int c; (c = gt_option(argc, argv, "o:h", longs)) != -1;) {
        times |= c == 'f' || c == 't';
        switch (c) {
        case 'f': r.from = gt_read_time("--from", optarg, &r.from_end); break;
        case 't': r.to = gt_read_time("--to", optarg, &r.to_before_end); break;
        case 'a': around = optarg; break;
        case 'm': margin = optarg; break;
        case 'r': r.threads = compile(optarg); break;
        case 'l': r.thorough = true; break;
        case 'o': r.output = optarg; break;
        case 'h': help(); break;
        default: return GT_EXIT_USAGE;
        }
    }
    gt_need_one_trace(argc, argv, "[options] TRACE -o FILE");
    if (!r.output)
        gt_fail(GT_EXIT_USAGE, "cut needs -o FILE: gotrace cut [options] TRACE -o FILE");
    if (around && times)
        gt_fail(GT_EXIT_USAGE, "cut: --around finds the time itself: leave out --from and --to");
    if (margin && !around)
        gt_fail(GT_EXIT_USAGE, "cut: --margin=%s goes with --around only", margin);
    r.input = argv[optind];
    if (around)
        go_around(&r, around, margin);
    gt_rewrite(&r);
    gt_rewrite_say_experiments(&r);
    return 0;
}
