/*
 * `gotrace [options] [--] program …`: sets the environment, looks whether the program can be
 * traced, and becomes it. Nothing stays between the program and its parent: its process id,
 * signals, descriptors and exit status are its own. (With -f or --wait this process stays:
 * family.h, wait.h.)
 */
#include "family.h"
#include "target.h"
#include "tool.h"
#include "wait.h"

#include "preload/options.h"

#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
    FAMILY = 'f',
    HELP = 'h',
    FORCE = 0x80,
    WAIT,
    VARIABLE = 0x100
}; /* and on: rows of the table */

/* An option is a variable of the library. value: NULL when the option has an argument. */
static const struct {
    const char *name;
    char letter;
    const char *argument, *variable, *value, *what;
    bool early; /* it cannot be had in a program that runs already */
} options[] = {
    {"output", 'o', "FILE", "GOTRACE_OUTPUT", NULL,
     "the trace; %p process id, %e program, %h host, %t time", false},
    {"format", 'F', "VERSION", "GOTRACE_FORMAT", NULL, "for the tools of that Go: go1.5 … go1.26",
     false},
    {"syscalls", 's', "WHICH", "GOTRACE_SYSCALLS", NULL, "all, blocking or none", false},
    {"syscall-min", 0, "NS", "GOTRACE_SYSCALL_MIN", NULL, "what counts as blocking", false},
    {"no-heap", 0, NULL, "GOTRACE_HEAP", "off", "do not count allocations", false},
    {"no-children", 0, NULL, "GOTRACE_CHILDREN", "0", "trace the first process only", false},
    {"all-children", 0, NULL, "GOTRACE_CHILDREN", "all", "and also children without threads",
     false},
    {"max-processes", 0, "N", "GOTRACE_MAX_PROCESSES", NULL, "record no more of a family", true},
    {"names", 0, "WHEN", "GOTRACE_NAMES", NULL,
     "now, or later: by who reads the trace, where programs must end soon", false},
    {"max-size", 0, "BYTES", "GOTRACE_MAX_SIZE", NULL, "stop before the file gets larger; K, M, G",
     false},
    {"max-mem", 0, "BYTES", "GOTRACE_MAX_MEM", NULL, "for event buffers; K, M, G", false},
    {"start", 0, "WHEN", "GOTRACE_START", NULL, "auto, or manual: when the program is told to",
     false},
    {"delay", 0, "TIME", "GOTRACE_DELAY", NULL, "start so long after the program; 500ms, 10s",
     true},
    {"rotate", 0, "EVERY", "GOTRACE_ROTATE", NULL,
     "a new file each 1h, each 1G, or 1h,1G: whichever is first", false},
    {"keep", 0, "N", "GOTRACE_KEEP", NULL, "the last N of these, and remove older ones", false},
    {"live", 0, "WHERE", "GOTRACE_LIVE", NULL,
     "on, or a directory: what gotrace recover needs when it is killed", true},
    {"duration", 0, "TIME", "GOTRACE_DURATION", NULL, "stop after so long", false},
    {"signal", 0, "SIGNAL", "GOTRACE_SIGNAL", NULL, "starts and stops", true},
    {"ring", 0, "LAST", "GOTRACE_RING", NULL, "keep the last in memory: 30s, 64M or 30s,64M",
     false},
    {"sched", 0, NULL, "GOTRACE_SCHED", "on", "record when threads get and lose their CPUs", true},
    {"cpu-hz", 0, "HZ", "GOTRACE_CPU_HZ", NULL, "sample what threads run", true},
    {"hold-min", 0, "TIME", "GOTRACE_HOLD_MIN", NULL, "tell how long locks are held, from there on",
     false},
    {"hang", 0, "TIME", "GOTRACE_HANG", NULL, "tell of deadlocks that have lasted so long", true},
    {"quiet", 'q', NULL, "GOTRACE_QUIET", "1", "no line on standard error", true},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* The table of switches that this command was built with is the library's. */
static bool is_known(int row)
{
    const char *refusal = gt_options_refusal(options[row].variable, "");
    return !refusal || *refusal;
}

void gt_run_print_options(bool running)
{
    for (int i = 0; i < OPTIONS; i++) {
        char left[64], letter[5] = "    ";
        if (!is_known(i) || (running && options[i].early))
            continue;
        if (options[i].letter)
            snprintf(letter, sizeof letter, "-%c, ", options[i].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, options[i].name,
                 options[i].argument ? "=" : "", options[i].argument ? options[i].argument : "");
        printf("  %-26s %s\n", left, options[i].what);
    }
    static const char *const others[][2] = {
        {"-f, --family", "one trace of the program and all processes that come of it"},
        {"    --wait", "stay until it ends, and make its trace whole if it is killed (--live)"},
        {"    --force", "run also what cannot be traced"},
        {"-h, --help", "this"},
        {"-V, --version", "of this command"}};
    for (size_t i = 0; !running && i < sizeof others / sizeof *others; i++)
        printf("  %-26s %s\n", others[i][0], others[i][1]);
}

/* The library ------------------------------------------------------------------------------- */

/* Of the build tree and of an installation, from the directory of this program. */
static const char *const places[] = {"../libgotrace.so", "../lib/libgotrace.so",
                                     "../lib/*/libgotrace.so", "../lib64/libgotrace.so"};

/* A path as a pattern that only it fits. */
static void quote(char *pattern, const char *path)
{
    for (; *path; *pattern++ = *path++) {
        if (strchr("*?[\\", *path))
            *pattern++ = '\\';
    }
    *pattern = 0;
}

void gt_run_find_library(char path[PATH_MAX])
{
    char self[PATH_MAX], directory[2 * PATH_MAX], pattern[3 * PATH_MAX];
    const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (!realpath("/proc/self/exe", self) && !realpath(started, self))
        gt_fail(GT_EXIT_OURS, "%s: %s", started, strerror(errno));
    const char *here = dirname(self);
    quote(directory, here);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", directory, places[i]);
        bool any = glob(pattern, 0, NULL, &found) == 0 && realpath(found.gl_pathv[0], path);
        globfree(&found);
        if (any)
            return;
    }
    gt_fail(GT_EXIT_OURS, "there is no libgotrace.so beside %s", here);
}

/* Before what is there already: an allocator preloaded first would hide its calls from us. */
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

/* Options ------------------------------------------------------------------------------------ */

static void set(int row, const char *value)
{
    const char *variable = options[row].variable;
    const char *refusal = gt_options_refusal(variable, value);
    if (refusal && !*refusal)
        gt_fail(GT_EXIT_OURS, "--%s: this libgotrace.so has no %s", options[row].name, variable);
    if (refusal)
        gt_fail(GT_EXIT_OURS, "--%s=%s is not %s", options[row].name, value, refusal);
    setenv(variable, value, 1);
}

static int row_of(int letter)
{
    for (int i = 0; i < OPTIONS; i++) {
        if (options[i].letter == letter)
            return i;
    }
    return -1;
}

static void describe(struct option *longs, char *letters)
{
    char *p = stpcpy(letters, "+fh"); /* +: the first other word is the program */
    for (int i = 0; i < OPTIONS; i++) {
        longs[i] =
            (struct option){options[i].name, options[i].argument ? required_argument : no_argument,
                            NULL, VARIABLE + i};
        if (options[i].letter)
            *p++ = options[i].letter;
        if (options[i].letter && options[i].argument)
            *p++ = ':';
    }
    *p = 0;
    longs[OPTIONS] = (struct option){"force", no_argument, NULL, FORCE};
    longs[OPTIONS + 1] = (struct option){"family", no_argument, NULL, FAMILY};
    longs[OPTIONS + 2] = (struct option){"wait", no_argument, NULL, WAIT};
    longs[OPTIONS + 3] = (struct option){0};
}

struct gt_ways gt_run_read_options(int argc, char **argv)
{
    struct option longs[OPTIONS + 4];
    char letters[3 + 2 * OPTIONS + 1];
    struct gt_ways ways = {0};
    int c;
    describe(longs, letters);
    while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        int row = c >= VARIABLE ? c - VARIABLE : row_of(c);
        if (c == FORCE)
            ways.force = true;
        else if (c == FAMILY)
            ways.family = true;
        else if (c == WAIT)
            ways.wait = true;
        else if (row >= 0)
            set(row, options[row].value ? options[row].value : optarg);
        else
            exit(GT_EXIT_OURS); /* getopt has said why */
    }
    return ways;
}

size_t gt_run_settings(char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < OPTIONS; i++) {
        const char *value = getenv(options[i].variable);
        if (!value)
            continue;
        if (options[i].early && is_known(i))
            gt_fail(GT_EXIT_USAGE, "%s (--%s) is for a program's start: it cannot be attached with",
                    options[i].variable, options[i].name);
        if (strcmp(options[i].variable, "GOTRACE_OUTPUT") == 0) {
            gt_options_refusal(options[i].variable, value);
            value = gt_options.output; /* absolute now */
        }
        n += (size_t)snprintf(n < size ? out + n : NULL, n < size ? size - n : 0, "%s=%s",
                              options[i].variable, value) +
             1;
    }
    return n;
}

int gt_command_run(int argc, char **argv)
{
    char library[PATH_MAX];
    struct gt_target target;
    struct gt_ways ways = gt_run_read_options(argc, argv);
    char **program = argv + optind;
    if (!*program)
        gt_fail(GT_EXIT_OURS, "which program? gotrace --help says more");
    gt_run_find_library(library);
    gt_target_look(&target, *program, library);
    if (target.status && !target.runs)
        gt_fail(target.status, "%s", target.why);
    if (target.status && !ways.force)
        gt_fail(target.status, "cannot trace: %s. (--force runs it all the same.)", target.why);
    preload(library, target.first);
    if (ways.wait)
        setenv("GOTRACE_LIVE", "on", false); /* or where it is said to be */
    if (ways.family)
        gt_family_begin();
    else if (ways.wait)
        gt_wait_begin();
    execvp(*program, program);
    int status = errno == ENOENT ? GT_EXIT_NOT_FOUND : GT_EXIT_CANNOT_RUN;
    gt_fail(status, "%s: %s", *program, strerror(errno));
}
