/* See wait.h. */
#include "wait.h"

#include "parent.h"
#include "tool.h"

#include "preload/options.h"
#include "scripts/tool/recover/recover.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char *output; /* the directory of the trace */
    const char *boxes;
    bool quiet;
} where;

/* As the library reads it. */
static const char *setting(const char *variable)
{
    const char *value = getenv(variable);
    if (value)
        gt_options_refusal(variable, value);
    return value;
}

static void prepare(void)
{
    const char *quiet = getenv("GOTRACE_QUIET");
    setting("GOTRACE_LIVE");
    const char *output = setting("GOTRACE_OUTPUT") ? gt_options.output : "trace.out";
    char *copy = strdup(output);
    where.output = copy ? realpath(dirname(copy), NULL) : NULL;
    if (!where.output)
        gt_fail(GT_EXIT_OURS, "--output=%s: --wait takes a directory that is there: %s", output,
                strerror(errno));
    where.boxes = *gt_options.live ? gt_options.live : where.output;
    where.quiet = quiet && strcmp(quiet, "1") == 0;
    free(copy);
}

/* In a process of its own, which ends where that cannot be. */
static void make_whole(const char *box)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (where.quiet)
            (void)!freopen("/dev/null", "w", stderr);
        gt_recover_in_place(box, where.output);
        exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        gt_say("%s: not recovered", box);
}

void gt_wait_begin(void)
{
    prepare();
    pid_t program = gt_parent_begin();
    if (program == 0)
        return;
    int status = gt_parent_await(false);
    char *box = gt_recover_find(where.boxes, program);
    if (box)
        make_whole(box);
    gt_parent_end_as(status);
}
