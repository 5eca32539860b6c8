/* `gotrace`: runs programs under libgotrace.so, and reads their traces. */
#include "main.h"

#include "scripts/tool/fold.h"
#include "scripts/tool/help.h"
#include "scripts/tool/run_options.h"
#include "scripts/tool/shrunk.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum group { READ, LIVE, REWRITE, HERE, GROUPS };

static const char *const headings[GROUPS] = {
    [READ] = "Read a trace",
    [LIVE] = "Running and killed programs",
    [REWRITE] = "Write a new trace",
    [HERE] = "This system",
};

static const struct command {
    const char *name, *arguments, *what;
    enum group group;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"why", "TRACE", "what limits the run, and what would help", READ, gt_command_why},
    {"top", "TRACE", "where threads waited longest", READ, gt_command_top},
    {"info", "TRACE", "threads, events, and whether it is whole", READ, gt_command_info},
    {"report", "TRACE", "one HTML file to look at, to hand on", READ, gt_command_report},
    {"view", "TRACE", "the viewer of `go tool trace`", READ, gt_command_view},
    {"sql", "TRACE [STATEMENT]", "the trace as an SQLite database", READ, gt_command_sql},
    {"export", "--to=FORMAT TRACE", "for pprof, Perfetto, flame graphs, ...", READ,
     gt_command_export},
    {"stacks", "PID|CORE", "what each thread waits for; deadlocks", LIVE, gt_command_stacks},
    {"attach", "PID", "record a program without the library", LIVE, gt_command_attach},
    {"detach", "PID", "end that", LIVE, gt_command_attach},
    {"start", "PID", "start recording (program with the library)", LIVE, gt_command_control},
    {"stop", "PID", "stop recording", LIVE, gt_command_control},
    {"snapshot", "PID [FILE]", "write its flight recorder to a file", LIVE, gt_command_control},
    {"recover", "BOX [TRACE] -o FILE", "the trace of a killed program", LIVE, gt_command_recover},
    {"cut", "TRACE -o FILE", "a part of it", REWRITE, gt_command_cut},
    {"convert", "--format=FORMAT TRACE -o FILE", "in another format", REWRITE, gt_command_convert},
    {"merge", "TRACE... -o FILE", "of several processes, as one", REWRITE, gt_command_merge},
    {"symbolize", "TRACE", "with names from debug files of elsewhere", REWRITE,
     gt_command_symbolize},
    {"doctor", "[PROGRAM|PID]", "what works here, and what mends the rest", HERE,
     gt_command_doctor},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *command_of(const char *name)
{
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    }
    return NULL;
}

const char *gt_command_meant(const char *typed)
{
    const char *names[COMMANDS + 2] = {NULL};
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    names[COMMANDS] = "record";
    return gt_help_meant(typed, names);
}

static void print_commands(enum group group)
{
    printf("\n%s:\n", headings[group]);
    for (int i = 0; i < COMMANDS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].arguments);
        if (commands[i].group == group)
            printf("  gotrace %-27s %s\n", left, commands[i].what);
    }
}

static void print_help(void)
{
    puts("usage: gotrace [record] [options] [--] PROGRAM [arguments]\n"
         "       gotrace COMMAND ...\n"
         "\n"
         "Without a COMMAND: runs PROGRAM, and records its threads, locks and waits. A\n"
         "program that is called like a command: gotrace -- NAME");
    for (enum group group = 0; group < GROUPS; group++)
        print_commands(group);
    puts("\n`gotrace COMMAND --help` prints the options of a command, `gotrace help COMMAND`\n"
         "opens its manual page, `gotrace help` this command's.\n\n"
         "Options for PROGRAM; gotrace(1) explains each:");
    gt_run_print_options(false);
}

/* The man page of a command: commands of one function share the first one's page. */
static const char *page_of(const struct command *command)
{
    const struct command *first = commands;
    while (first->run != command->run)
        first++;
    return first->name;
}

/* Runs `gotrace help [COMMAND]`. */
static int open_page(const char *name)
{
    if (name && strcmp(name, "record") == 0) /* its page is gotrace(1) */
        name = NULL;
    const struct command *command = name ? command_of(name) : NULL;
    const char *meant = name && !command ? gt_command_meant(name) : NULL;
    if (name && !command)
        gt_fail(GT_EXIT_USAGE, "help: there is no command %s%s%s%s", name,
                meant ? "; did you mean " : "; gotrace --help lists them", meant ? meant : "",
                meant ? "?" : "");
    gt_help_page(command ? page_of(command) : NULL);
    if (!command) {
        print_help();
        return 0;
    }
    char help_option[] = "--help", *argv[] = {(char *)(uintptr_t)command->name, help_option, NULL};
    return command->run(2, argv);
}

static int run(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "help") == 0 && argc <= 3)
        return open_page(argv[2]);
    if (strcmp(first, "record") == 0) /* for those who look for a command */
        return gt_command_run(argc - 1, argv + 1);
    const struct command *command = command_of(first);
    if (!command)
        return gt_command_run(argc, argv);
    gt_help_command = command->name;
    return command->run(argc - 1, argv + 1);
}

static void close_output(void)
{
    int flushed = fflush(stdout);
    gt_fold_end();
    if (flushed != 0 || ferror(stdout)) {
        gt_say("standard output: %s", strerror(errno));
        _exit(GT_EXIT_FAILED);
    }
}

static _Noreturn void no_memory(void)
{
    gt_fail(GT_EXIT_FAILED, "no memory");
}

int main(int argc, char **argv)
{
    gt_reader_no_memory = no_memory;
    atexit(close_output); /* some commands call exit */
    gt_shrunk_watch();
    gt_help_all = print_help;
    return run(argc, argv);
}
