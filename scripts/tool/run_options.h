/* The options of `gotrace PROGRAM`, which `gotrace attach` takes, too: variables of the library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Prints the options of run, for help; running: only those for a program that runs already. */
void gt_run_print_options(bool running);

/*
 * Reads the options into the environment, and moves optind to the first word that is no option.
 * Returns the options that are no variables of the library.
 */
struct gt_ways {
    bool force; /* run a program even if it cannot be traced */
    bool family, wait;
};
struct gt_ways gt_run_read_options(int argc, char **argv);

/*
 * Writes the environment's settings as preload/shared/options.h reads them, but for the last zero
 * byte; returns their length. Ends the program with a message if a setting is only for a program's
 * start.
 */
size_t gt_run_settings(char *out, size_t size);
