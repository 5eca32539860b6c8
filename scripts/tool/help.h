/* Functions that commands share for options and help. */
#pragma once

#include <getopt.h>

/* The command that runs, as "why"; "": `gotrace` records a program. */
extern const char *gt_help_command;

/* Prints the text of `gotrace --help`; main.c sets it. */
extern void (*gt_help_all)(void);

/*
 * The next option, as getopt_long(3): its letter or val, -1 at the end. Returns '?' for an unknown
 * option, or one that lacks its argument, after a message that suggests a similar option.
 */
int gt_option(int argc, char **argv, const char *letters, const struct option *longs);

/* Ends the program unless one argument is left. argv[0]: the command; usage: its arguments. */
void gt_need_one_trace(int argc, char **argv, const char *usage);

/* The name most similar to `typed`; NULL: no name is similar. The list ends with NULL. */
const char *gt_help_meant(const char *typed, const char *const *names);

/*
 * Prints words in lines of at most 80 columns that begin with `indent` columns: `first` in the
 * first line, filled with spaces, and spaces in the others.
 */
void gt_help_wrap(const char *first, int indent, const char *words);

/*
 * Executes man(1) with the page gotrace-COMMAND, or gotrace for NULL, of this checkout or
 * installation. Returns if there is no man(1) or no page.
 */
void gt_help_page(const char *command);
