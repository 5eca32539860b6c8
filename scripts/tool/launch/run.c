/*
 * `gotrace [options] [--] program …`: sets the environment, checks that the program can be traced,
 * and executes it. No process stays between the program and its parent: its process id, signals,
 * descriptors and exit status are its own. (With -f or --wait this process stays: family.h,
 * wait_for_box.h.)
 */
#include "family.h"
#include "main.h"
#include "wait_for_box.h"

#include "encoder/base/path.h"
#include "encoder/read/trace.h"
#include "preload/shared/options.h"
#include "scripts/tool/help.h"
#include "scripts/tool/run_options.h"
#include "scripts/tool/target.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Puts the library before others in LD_PRELOAD: an allocator before it would hide its calls. */
static void preload(const char *library, const char *first)
{
    const char *others = getenv("LD_PRELOAD");
    char *value;
    if (strpbrk(library, " :"))
        gt_fail(GT_EXIT_OURS, "%s: the loader takes no path with a space or a colon", library);
    if (asprintf(&value, "%s%s%s%s%s", first, *first ? ":" : "", library,
                 others && *others ? ":" : "", others ? others : "") < 0 ||
        setenv("LD_PRELOAD", value, 1) != 0)
        gt_fail(GT_EXIT_OURS, "no memory");
}

/*
 * Ends the program: no such program is found. Says what the word may have been meant as: a file of
 * this directory, a command, or a report of `gotrace top`.
 */
static _Noreturn void fail_not_found(const struct gt_target *target, const char *word)
{
    struct stat st;
    struct gt_trace trace;
    const char *begin = "", *meant = NULL;
    bool is_file = !strchr(word, '/') && stat(word, &st) == 0 && S_ISREG(st.st_mode);
    if (is_file && st.st_mode & S_IXUSR)
        begin = "./", meant = gt_to_type(word);
    else if (is_file && !gt_trace_open(&trace, word))
        begin = "why ", meant = gt_to_type(word);
    else if (!(meant = gt_command_meant(word)) && (meant = gt_help_meant(word, gt_top_reports)))
        begin = "top --";
    else if (!meant && is_file)
        gt_fail(target->status,
                "%s: no program in PATH, and the file here is no program and no "
                "trace; gotrace --help lists options and commands",
                word);
    if (meant)
        gt_fail(target->status, "%s; did you mean gotrace %s%s?", target->why, begin, meant);
    gt_fail(target->status, "%s", target->why);
}

/*
 * Ends the program if the trace's directory is missing, or may not be written to: the library would
 * say so when the program has ended.
 */
static void check_output(void)
{
    const char *on = getenv("GOTRACE"), *set = getenv("GOTRACE_OUTPUT");
    const char *file = set && *set ? set : GT_OUTPUT_DEFAULT;
    char dir[PATH_MAX];
    size_t n = (size_t)(gt_path_name(file) - file);
    if ((on && strcmp(on, "off") == 0) || n >= sizeof dir || memchr(file, '%', n))
        return;
    snprintf(dir, sizeof dir, "%.*s", n ? (int)n : 1, n ? file : ".");
    bool there = access(dir, F_OK) == 0;
    if (!there && errno == ENOENT)
        gt_fail(GT_EXIT_OURS, "--output=%s: there is no directory %s; mkdir -p %s makes it", file,
                dir, gt_to_type(dir));
    if (!there || (!strchr(file, '%') && access(file, F_OK) != 0 && eaccess(dir, W_OK | X_OK) != 0))
        gt_fail(GT_EXIT_OURS, "--output=%s: directory %s: %s; give another file by -o FILE", file,
                dir, strerror(errno));
}

int gt_command_run(int argc, char **argv)
{
    char library[PATH_MAX];
    struct gt_target target;
    struct gt_ways ways = gt_run_read_options(argc, argv);
    char **program = argv + optind;
    if (!*program)
        gt_fail(GT_EXIT_OURS,
                "no program to record: gotrace [options] -- PROGRAM [arguments]; gotrace "
                "--help lists options and commands");
    gt_find_library(library);
    gt_target_look(&target, *program, library);
    if (target.status == GT_EXIT_NOT_FOUND && !target.runs)
        fail_not_found(&target, *program);
    if (target.status && !target.runs)
        gt_fail(target.status, "%s", target.why);
    if (target.status && !ways.force)
        gt_fail(target.status, "cannot trace: %s. (--force runs it nevertheless.)", target.why);
    if (!ways.force)
        check_output();
    preload(library, target.first);
    if (ways.wait)
        setenv("GOTRACE_LIVE", "on", false); /* unless the user gave a directory */
    if (ways.family)
        gt_family_begin();
    else if (ways.wait)
        gt_wait_begin();
    execvp(*program, program);
    int status = errno == ENOENT ? GT_EXIT_NOT_FOUND : GT_EXIT_CANNOT_RUN;
    gt_fail(status, "%s: %s", *program, strerror(errno));
}
