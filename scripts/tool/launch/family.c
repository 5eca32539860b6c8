/* See family.h. */
#include "family.h"

#include "encoder/base/log.h"
#include "encoder/base/sort.h"
#include "encoder/format/format.h"
#include "preload/shared/census.h"
#include "preload/shared/descent.h"
#include "preload/shared/options.h"
#include "scripts/tool/parent.h"
#include "scripts/tool/recover/boxed.h"
#include "scripts/tool/recover/clean.h"
#include "scripts/tool/replacement.h"
#include "scripts/tool/rewrite/merging.h"
#include "scripts/tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    char *output, *directory;
    char *around; /* our directory around `directory`; NULL: none */
    bool quiet;
} family;

/* Where the traces go ------------------------------------------------------------------------ */

static void set(const char *variable, const char *value)
{
    if (setenv(variable, value, 1) != 0)
        gt_fail(GT_EXIT_OURS, "no memory");
}

/* Limits the number of recorded processes, as no more than GT_MERGED_MAX traces can be merged. */
static void bound(void)
{
    char number[16];
    const char *given = getenv("GOTRACE_MAX_PROCESSES");
    if (given)
        gt_options_refusal("GOTRACE_MAX_PROCESSES", given);
    if (!gt_options.max_processes || gt_options.max_processes > GT_MERGED_MAX)
        gt_options.max_processes = GT_MERGED_MAX;
    snprintf(number, sizeof number, "%u", (unsigned)gt_options.max_processes);
    set("GOTRACE_MAX_PROCESSES", number);
    const char *census = gt_census_begin(geteuid() == 0 ? 0666 : 0600);
    if (census)
        set(GT_CENSUS_VARIABLE, census);
}

/*
 * Lets a server's processes write to the directory after they have given up root, but no other
 * users' processes. The directory is inside one that only root can list, and has 128 random bits in
 * its name. Only readers of the environment of a process of the family know the name.
 */
static bool open_to_others(void)
{
    uint64_t secret[2];
    family.around = family.directory;
    if (getrandom(secret, sizeof secret, 0) != sizeof secret || chmod(family.around, 0711) != 0)
        return false;
    if (asprintf(&family.directory, "%s/%016llx%016llx", family.around,
                 (unsigned long long)secret[0], (unsigned long long)secret[1]) < 0)
        gt_fail(GT_EXIT_OURS, "no memory");
    return mkdir(family.directory, 0700) == 0 && chmod(family.directory, 01733) == 0;
}

/*
 * Makes this process the root of the family, as the user started it. All other processes are
 * children, which report only what they have lost: their files are of no interest to the user.
 */
static void be_root(const char *pattern)
{
    char number[24];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(number, sizeof number, "%d", (int)getpid());
    set(GT_ROOT_PID, number);
    snprintf(number, sizeof number, "%lld", now.tv_sec * 1000000000LL + now.tv_nsec);
    set(GT_ROOT_TIME, number);
    gt_options_refusal("GOTRACE_OUTPUT", pattern);
    set(GT_ROOT_OUTPUT, gt_options.output);
    set(GT_ROOT_MERGED, family.output);
    if (!family.quiet)
        unsetenv("GOTRACE_QUIET");
}

/* Reports faults in the environment, once, as the processes have to be quiet about them. */
static void say_what_is_wrong(void)
{
    gt_log_init();
    gt_options_read(NULL);
}

static void prepare(void)
{
    say_what_is_wrong();
    const char *output = getenv("GOTRACE_OUTPUT"), *quiet = getenv("GOTRACE_QUIET");
    char *pattern;
    output = output && *output ? output : GT_OUTPUT_DEFAULT;
    if (strchr(output, '%'))
        gt_fail(GT_EXIT_OURS, "--output=%s: of a family comes one file; its name has no %%",
                output);
    if (getenv("GOTRACE_ROTATE"))
        gt_fail(GT_EXIT_OURS, "--rotate: of a family comes one file");
    const char *refusal = gt_replacement_refusal(output);
    if (refusal)
        gt_fail(GT_EXIT_OURS, "--output: %s %s", output, refusal);
    family.quiet = quiet && strcmp(quiet, "1") == 0;
    family.output = strdup(output);
    if (!family.output || asprintf(&family.directory, "%s.XXXXXX", output) < 0)
        gt_fail(GT_EXIT_OURS, "no memory");
    if (!mkdtemp(family.directory) || (geteuid() == 0 && !open_to_others()))
        gt_fail(GT_EXIT_OURS, "%s: %s", family.directory, strerror(errno));
    /* %u, as a process that calls exec keeps its pid, and perhaps its name. */
    if (asprintf(&pattern, "%s/%%p-%%u-%%e", family.directory) < 0)
        gt_fail(GT_EXIT_OURS, "no memory");
    set("GOTRACE_OUTPUT", pattern);
    set("GOTRACE_CHILDREN", "all");
    be_root(pattern);
    free(pattern);
    bound();
}

/* Merging ------------------------------------------------------------------------------------ */

struct traces {
    char **path;
    size_t n;
};

GT_ORDER_POINTERS(by_name, char, strcmp(x, y))

/*
 * Whether the file is a black box, of a running process or not recovered. It is left out: the trace
 * that it continues is read.
 */
static bool is_box(const char *name)
{
    return gt_boxed_trace_length(name) > 0;
}

/* Whether the file is the line table beside a trace of the format go1.5. */
static bool is_line_table(const char *name)
{
    char path[PATH_MAX];
    size_t length = strlen(name), suffix = sizeof GT_V1_ELF_SUFFIX - 1;
    if (length <= suffix || strcmp(name + length - suffix, GT_V1_ELF_SUFFIX) != 0)
        return false;
    int n = snprintf(path, sizeof path, "%s/%.*s", family.directory, (int)(length - suffix), name);
    return n < (int)sizeof path && access(path, F_OK) == 0;
}

/* Whether the file is regular, as all the library's files are. */
static bool is_regular(DIR *dir, const char *name)
{
    struct stat st;
    bool is = fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    if (!is)
        gt_say("%s/%s is no regular file, and is left out", family.directory, name);
    return is;
}

static struct traces find(void)
{
    struct traces found = {0};
    DIR *dir = opendir(family.directory);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (*e->d_name == '.' || is_box(e->d_name) || is_line_table(e->d_name) ||
            !is_regular(dir, e->d_name))
            continue;
        found.path = realloc(found.path, (found.n + 1) * sizeof *found.path);
        if (!found.path ||
            asprintf(&found.path[found.n++], "%s/%s", family.directory, e->d_name) < 0)
            gt_fail(GT_EXIT_FAILED, "no memory");
    }
    if (dir)
        closedir(dir);
    if (found.n)
        qsort(found.path, found.n, sizeof *found.path, by_name);
    return found;
}

/* Merges in a process of its own, as a failure ends the process with a message. */
static void merge(const void *arg)
{
    const struct traces *t = arg;
    gt_merging_do(&(struct gt_merging){.inputs = t->path, .n = t->n, .output = family.output});
}

/* How many processes the traces are of: a process that called exec has several traces. */
static size_t processes_of(const struct traces *t)
{
    size_t n = 0;
    long before = 0;
    for (size_t i = 0; i < t->n; i++) {
        long pid = strtol(t->path[i] + strlen(family.directory) + 1, NULL, 10);
        n += pid != before;
        before = pid;
    }
    return n;
}

static bool put_together(const struct traces *t)
{
    if (t->n > GT_MERGED_MAX)
        gt_say("%zu traces are more than %d, which can be merged", t->n, GT_MERGED_MAX);
    return t->n <= GT_MERGED_MAX && gt_parent_aside(merge, t);
}

static void clean_up(void)
{
    DIR *dir = opendir(family.directory);
    for (struct dirent *e; dir && (e = readdir(dir));)
        unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(family.directory);
    if (family.around)
        rmdir(family.around);
}

static void report(const struct traces *t)
{
    struct stat st = {0};
    size_t n = processes_of(t);
    uint32_t more = gt_census_refused();
    stat(family.output, &st);
    if (!family.quiet)
        gt_say("%s: %.1f KiB, %zu process%s; next: %s why %s", family.output,
               (double)st.st_size / 1024, n, n == 1 ? "" : "es",
               gt_to_type(program_invocation_name), gt_to_type(family.output));
    if (more && !family.quiet)
        gt_say("GOTRACE_MAX_PROCESSES=%u: %u more were not recorded",
               (unsigned)gt_options.max_processes, more);
}

/* The end ------------------------------------------------------------------------------------ */

static _Noreturn void lead(void)
{
    int status = gt_parent_await(true);
    gt_recover_clean(family.directory, false);
    struct traces t = find();
    bool merged = t.n && put_together(&t);
    if (!t.n)
        gt_say("no process of this family was recorded");
    else if (!merged)
        gt_say("the traces of its processes are in %s", family.directory);
    else
        report(&t);
    if (!t.n || merged)
        clean_up();
    gt_parent_end_as(status);
}

void gt_family_begin(void)
{
    prepare();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (gt_parent_begin() > 0)
        lead();
}
