/* `gotrace`: runs programs under libgotrace.so, and reads what it wrote. */
#include "shrunk.h"
#include "tool.h"

#include "encoder/base/printable.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char gt_version[] = GT_VERSION;

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list ap)
{
    char line[3 * PATH_MAX];
    vsnprintf(line, sizeof line, format, ap);
    gt_make_printable(line, strlen(line));
    fprintf(stderr, "gotrace: %s\n", line);
}

const char *gt_printable(const char *text)
{
    static char copies[4][PATH_MAX];
    static unsigned turn;
    char *copy = copies[turn++ % 4];
    snprintf(copy, sizeof *copies, "%s", text);
    gt_make_printable(copy, strlen(copy));
    return copy;
}

void gt_say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(format, ap);
    va_end(ap);
}

void gt_fail(int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say(format, ap);
    va_end(ap);
    exit(status);
}

static const struct command {
    const char *name, *arguments, *what;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"view", "TRACE", "open the viewer, `go tool trace`, in a browser", gt_command_view},
    {"info", "TRACE", "print what is in a trace", gt_command_info},
    {"top", "[options] TRACE", "print where threads waited longest", gt_command_top},
    {"why", "[options] TRACE", "print what a run's time went to, and what would help",
     gt_command_why},
    {"sql", "[options] TRACE [STATEMENT]", "ask a trace as a database", gt_command_sql},
    {"recover", "BOX [TRACE] -o FILE | --clean=DIRECTORY",
     "write the trace of a program that was killed", gt_command_recover},
    {"cut", "[options] TRACE -o FILE", "write a part of a trace to a file of its own",
     gt_command_cut},
    {"convert", "--format=FORMAT TRACE -o FILE", "write a trace in another format",
     gt_command_convert},
    {"merge", "[options] TRACE... -o FILE", "write traces of several processes as one",
     gt_command_merge},
    {"symbolize", "[options] TRACE", "fill in names from debug files that the host did not have",
     gt_command_symbolize},
    {"export", "--to=FORMAT [options] TRACE", "write a trace for other tools: pprof, Perfetto, …",
     gt_command_export},
    {"stacks", "[options] PID|CORE [EXECUTABLE]",
     "print what every thread waits for, and deadlocks", gt_command_stacks},
    {"attach", "[options] PID", "record a program that was started without the library",
     gt_command_attach},
    {"detach", "PID", "stop that, and leave it as it was", gt_command_attach},
    {"start", "PID", "start recording in a running program", gt_command_control},
    {"stop", "PID", "stop recording there", gt_command_control},
    {"snapshot", "PID [FILE]", "have the flight recorder there written", gt_command_control},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    printf(
        "usage: gotrace [options] [--] PROGRAM [arguments]   run PROGRAM and trace its threads\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("       gotrace %-9s %-33s %s\n", commands[i].name, commands[i].arguments,
               commands[i].what);
    printf("\nEach command has its own --help. A program that is named like a command: gotrace -- "
           "NAME\n\nOptions:\n");
    gt_run_print_options(false);
}

static int run(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        help();
        return 0;
    }
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        printf("gotrace %s\n", gt_version);
        return 0;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(first, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    return gt_command_run(argc, argv);
}

static void close_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        gt_say("standard output: %s", strerror(errno));
        _exit(GT_EXIT_FAILED);
    }
}

int main(int argc, char **argv)
{
    atexit(close_output); /* some commands end by exit */
    gt_shrunk_watch();
    return run(argc, argv);
}
