/*
 * Declarations that the commands of `gotrace` share. Each command is a function in its own file.
 * main.c calls it with the arguments from its own name on; it returns the exit status.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The launcher's exit statuses, as env(1) and nice(1) have them; else the program's own status. */
enum { GT_EXIT_OURS = 125, GT_EXIT_CANNOT_RUN = 126, GT_EXIT_NOT_FOUND = 127 };

/* Exit statuses of the other commands. */
enum { GT_EXIT_FAILED = 1, GT_EXIT_USAGE = 2 };

int gt_command_run(int argc, char **argv); /* argv[0]: "gotrace" */
int gt_command_view(int argc, char **argv);
int gt_command_info(int argc, char **argv);
int gt_command_top(int argc, char **argv);
int gt_command_why(int argc, char **argv);
int gt_command_report(int argc, char **argv);
int gt_command_doctor(int argc, char **argv);
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

/*
 * The options of `gotrace top` for its reports, without "--"; NULL ends them. --cum is left out:
 * any word of three letters is similar to it.
 */
extern const char *const gt_top_reports[];

/* Prints a line `gotrace: …` on standard error, with unprintable characters replaced. */
void gt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A text of unknown origin made printable, for standard output; cut at PATH_MAX. Valid for four
 * calls. */
const char *gt_printable(const char *text);

/*
 * A file's name as a word of a command that the user may type, by gt_shell_word; "./" begins it
 * where it would be an option. Valid for four calls.
 */
const char *gt_to_type(const char *file);

/* Prints a line as gt_say does, and ends the program with this exit status. */
_Noreturn void gt_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The directory of this program, within `self`; ends with a message if nothing tells it. */
const char *gt_own_directory(char self[PATH_MAX]);

/* A time as text: "1.234s", "56.70ms", "890.1us" or "12ns"; valid for eight calls. */
const char *gt_duration(uint64_t ns);

/* "1 thread", "3 threads"; valid for eight calls. */
const char *gt_count(uint64_t n, const char *noun);

/*
 * Reads the time given for an option, in ns. *from_end: whether it has a minus; NULL: a minus is
 * not allowed. Ends the program with a message if the text is no time.
 */
uint64_t gt_read_time(const char *option, const char *text, bool *from_end);

/* Ends the program: --from is not before --to. */
_Noreturn void gt_fail_reversed(uint64_t from, uint64_t to);

/* Ends the program: the trace lasts `ns`, and --from is later. */
_Noreturn void gt_fail_late(const char *path, uint64_t from, uint64_t ns);

/* Finds libgotrace.so; ends the program with a message if there is none. */
void gt_find_library(char path[PATH_MAX]);

/* control_command.c: asks the library in a process for an action, and prints the result. Returns
 * the exit status, or ends the program. */
int gt_control(const char *action, int pid, const char *path);

/* Whether the process has a thread of the library that can be asked. */
bool gt_control_finds(int pid);

/* Whether the process has loaded the library. */
bool gt_has_library(int pid);
