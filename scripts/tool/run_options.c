/* See run_options.h. */
#include "run_options.h"

#include "help.h"
#include "tool.h"

#include "encoder/base/version.h"
#include "preload/shared/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAMILY = 'f',
    HELP = 'h',
    VERSION = 'V',
    FORCE = 0x80,
    WAIT,
    VARIABLE = 0x100
}; /* VARIABLE and on: rows of the table */

enum group { FILES, WHAT, LIMITS, WHEN, OTHER, GROUPS };

static const char *const headings[GROUPS] = {
    [FILES] = "The trace",          [WHAT] = "What is recorded", [LIMITS] = "Limits",
    [WHEN] = "When it is recorded", [OTHER] = "Other",
};

/* Each option sets a variable of the library. value: NULL if the option has an argument. */
static const struct {
    const char *name;
    char letter;
    const char *argument, *variable, *value;
    enum group group;
    bool early; /* not for a program that runs already */
    const char *what;
} options[] = {
    {"output", 'o', "FILE", "GOTRACE_OUTPUT", NULL, FILES, false,
     "%p process, %e program, %h host, %t time (" GT_OUTPUT_DEFAULT ")"},
    {"format", 'F', "VERSION", "GOTRACE_FORMAT", NULL, FILES, false,
     "go1.5 to go1.26: which Go reads it (" GT_FORMAT_DEFAULT ")"},
    {"names", 0, "WHEN", "GOTRACE_NAMES", NULL, FILES, false,
     "look names up now, at the end, or later (now)"},
    {"rotate", 0, "EVERY", "GOTRACE_ROTATE", NULL, FILES, false,
     "a new file each 1h, each 1G, or both: 1h,1G"},
    {"keep", 0, "N", "GOTRACE_KEEP", NULL, FILES, false, "keep only the last N of those"},
    {"live", 0, "WHERE", "GOTRACE_LIVE", NULL, FILES, true,
     "on or a directory: a kill loses nothing (off)"},
    {"syscalls", 's', "WHICH", "GOTRACE_SYSCALLS", NULL, WHAT, false,
     "system calls: all, blocking, none (blocking)"},
    {"syscall-min", 0, "NS", "GOTRACE_SYSCALL_MIN", NULL, WHAT, false,
     "calls from this length on are blocking (10000)"},
    {"sched", 0, NULL, "GOTRACE_SCHED", "on", WHAT, true, "when threads get and lose their CPUs"},
    {"cpu-hz", 0, "HZ", "GOTRACE_CPU_HZ", NULL, WHAT, true,
     "CPU samples of each thread per second (0)"},
    {"hold-min", 0, "TIME", "GOTRACE_HOLD_MIN", NULL, WHAT, false,
     "lock holds from this length on (1ms)"},
    {"no-heap", 0, NULL, "GOTRACE_HEAP", "off", WHAT, false, "no allocations"},
    {"no-children", 0, NULL, "GOTRACE_CHILDREN", "0", WHAT, false, "only the first process"},
    {"all-children", 0, NULL, "GOTRACE_CHILDREN", "all", WHAT, false,
     "also children that make no thread"},
    {"max-processes", 0, "N", "GOTRACE_MAX_PROCESSES", NULL, LIMITS, true,
     "record at most N processes (no limit)"},
    {"max-size", 0, "BYTES", "GOTRACE_MAX_SIZE", NULL, LIMITS, false,
     "stop before the file gets larger: 100M (no limit)"},
    {"max-mem", 0, "BYTES", "GOTRACE_MAX_MEM", NULL, LIMITS, false, "memory for events (256M)"},
    {"duration", 0, "TIME", "GOTRACE_DURATION", NULL, LIMITS, false,
     "stop after that time: 10s (no limit)"},
    {"start", 0, "WHEN", "GOTRACE_START", NULL, WHEN, false,
     "auto, or manual: by gotrace start (auto)"},
    {"delay", 0, "TIME", "GOTRACE_DELAY", NULL, WHEN, true, "start after that time: 500ms (0)"},
    {"signal", 0, "SIGNAL", "GOTRACE_SIGNAL", NULL, WHEN, true,
     "this signal starts and stops recording: USR2"},
    {"ring", 0, "LAST", "GOTRACE_RING", NULL, WHEN, false,
     "flight recorder: keep the last 30s, 64M, or 30s,64M"},
    {"hang", 0, "TIME", "GOTRACE_HANG", NULL, OTHER, true,
     "report deadlocks that last that long (never)"},
    {"quiet", 'q', NULL, "GOTRACE_QUIET", "1", OTHER, true, "no line on standard error"},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* Whether the library, built with the same table of switches, knows the variable. */
static bool is_known(int row)
{
    const char *refusal = gt_options_refusal(options[row].variable, "");
    return !refusal || *refusal;
}

static void print_option(int row)
{
    char left[64], letter[5] = "    ";
    if (options[row].letter)
        snprintf(letter, sizeof letter, "-%c, ", options[row].letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, options[row].name,
             options[row].argument ? "=" : "", options[row].argument ? options[row].argument : "");
    printf("  %-25s %s\n", left, options[row].what);
}

void gt_run_print_options(bool running)
{
    for (enum group group = 0; group < GROUPS; group++) {
        if (running && group == OTHER)
            continue;
        printf("\n%s:\n", headings[group]);
        for (int i = 0; i < OPTIONS; i++) {
            if (options[i].group == group && is_known(i) && !(running && options[i].early))
                print_option(i);
        }
    }
    if (!running)
        puts("  -f, --family              one trace of PROGRAM and all its descendants\n"
             "      --wait                stay, and complete the trace if PROGRAM is killed\n"
             "      --force               run PROGRAM even if it cannot be recorded\n"
             "  -h, --help                print this\n"
             "  -V, --version             print the version");
}

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
    char *p = stpcpy(letters, "+fhV"); /* +: the first other word is the program */
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
    longs[OPTIONS + 3] = (struct option){"help", no_argument, NULL, HELP};
    longs[OPTIONS + 4] = (struct option){"version", no_argument, NULL, VERSION};
    longs[OPTIONS + 5] = (struct option){0};
}

_Noreturn static void answer(int letter)
{
    if (letter == HELP)
        gt_help_all();
    else
        printf("gotrace %s\n", gt_version);
    exit(0);
}

struct gt_ways gt_run_read_options(int argc, char **argv)
{
    struct option longs[OPTIONS + 6];
    char letters[sizeof "+fhV" + 2 * OPTIONS];
    struct gt_ways ways = {0};
    int c;
    describe(longs, letters);
    while ((c = gt_option(argc, argv, letters, longs)) != -1) {
        int row = c >= VARIABLE ? c - VARIABLE : row_of(c);
        if (c == FORCE)
            ways.force = true;
        else if (c == FAMILY)
            ways.family = true;
        else if (c == WAIT)
            ways.wait = true;
        else if (row >= 0)
            set(row, options[row].value ? options[row].value : optarg);
        else if (c == HELP || c == VERSION)
            answer(c);
        else
            exit(GT_EXIT_OURS); /* gt_option has printed a message */
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
