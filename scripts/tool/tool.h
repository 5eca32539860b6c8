/*
 * What the commands of `gotrace` share. Each command is a function of its own file, called by
 * main.c with the arguments from its own name on; it returns the exit status.
 */
#ifndef GT_TOOL_H
#define GT_TOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of a launcher, as those of env(1) and nice(1); else the program's own. */
enum { GT_EXIT_OURS = 125, GT_EXIT_CANNOT_RUN = 126, GT_EXIT_NOT_FOUND = 127 };

/* Of the other commands. */
enum { GT_EXIT_FAILED = 1, GT_EXIT_USAGE = 2 };

int gt_command_run(int argc, char **argv); /* argv[0]: "gotrace" */
int gt_command_view(int argc, char **argv);
int gt_command_info(int argc, char **argv);
int gt_command_top(int argc, char **argv);
int gt_command_why(int argc, char **argv);
int gt_command_sql(int argc, char **argv);
int gt_command_symbolize(int argc, char **argv);
int gt_command_export(int argc, char **argv);
int gt_command_recover(int argc, char **argv);
int gt_command_cut(int argc, char **argv);
int gt_command_convert(int argc, char **argv);
int gt_command_merge(int argc, char **argv);
int gt_command_stacks(int argc, char **argv);
int gt_command_control(int argc, char **argv); /* start, stop, snapshot */
int gt_command_attach(int argc, char **argv);  /* attach, detach */

extern const char gt_version[];

/* A line `gotrace: …` on standard error, printable whatever it is about. */
void gt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A text of others for a line on standard output, printable; cut at PATH_MAX. Valid for four calls.
 */
const char *gt_printable(const char *text);

/* The same as gt_say and the end, with this exit status. */
_Noreturn void gt_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A time as people read it: "1.234s", "56.70ms", "890.1us" or "12ns"; valid for eight calls. */
const char *gt_duration(uint64_t ns);

/*
 * A time that was given for that option, ns; from_end: whether it has a minus, NULL: it may not.
 * Ends the program with a message if it is none.
 */
uint64_t gt_read_time(const char *option, const char *text, bool *from_end);

/* The table of run's options, for help; running: only those for a program that runs already. */
void gt_run_print_options(bool running);

/*
 * Reads them into the environment, and moves optind to what is no option; those that are no
 * variables of the library are returned.
 */
struct gt_ways {
    bool force; /* run what cannot be traced, too */
    bool family, wait;
};
struct gt_ways gt_run_read_options(int argc, char **argv);

/*
 * What the environment then says, as preload/options.h reads settings, but for the last zero; how
 * long that is. Ends with a message if something of it is only for a program's start.
 */
size_t gt_run_settings(char *out, size_t size);

/* Where libgotrace.so is; ends with a message if it is nowhere. */
void gt_run_find_library(char path[PATH_MAX]);

/* control.c: has the library in a process do this and says so. The exit status, or the end. */
int gt_control(const char *action, int pid, const char *path);

/* Whether there is a thread of the library's in the process that could be asked. */
bool gt_control_finds(int pid);

/* Whether the process has loaded the library. */
bool gt_has_library(int pid);

#endif
