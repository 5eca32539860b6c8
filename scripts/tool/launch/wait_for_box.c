/* See wait_for_box.h. */
#include "wait_for_box.h"

#include "encoder/base/log.h"
#include "preload/shared/options.h"
#include "scripts/tool/parent.h"
#include "scripts/tool/recover/recover.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char *output; /* the directory of the trace */
    const char *boxes;
} where;

/* The value of a variable, which is also parsed as the library does it. */
static const char *setting(const char *variable)
{
    const char *value = getenv(variable);
    if (value)
        gt_options_refusal(variable, value);
    return value;
}

static void prepare(void)
{
    setting("GOTRACE_QUIET");
    setting("GOTRACE_LIVE");
    const char *output = setting("GOTRACE_OUTPUT") ? gt_options.output : GT_OUTPUT_DEFAULT;
    char *copy = strdup(output);
    where.output = copy ? realpath(dirname(copy), NULL) : NULL;
    if (!where.output)
        gt_fail(GT_EXIT_OURS, "--output=%s: --wait takes a directory that is there: %s", output,
                strerror(errno));
    where.boxes = *gt_options.live ? gt_options.live : where.output;
    free(copy);
}

static void make_whole(const void *box)
{
    if (gt_log_quiet == GT_QUIET_ALL)
        (void)!freopen("/dev/null", "w", stderr);
    gt_recover_in_place(box, where.output);
}

void gt_wait_begin(void)
{
    prepare();
    pid_t program = gt_parent_begin();
    if (program == 0)
        return;
    int status = gt_parent_await(false);
    char *box = gt_recover_find(where.boxes, program);
    if (box && !gt_parent_aside(make_whole, box))
        gt_say("%s: not recovered", box);
    gt_parent_end_as(status);
}
