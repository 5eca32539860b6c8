/* Runs another program for its answer. */
#pragma once

#include <stddef.h>

/*
 * Runs argv, which execvp finds, without input and without messages. line: the first line that it
 * prints, without its end; "" if none. Returns its exit status; -1: it did not run or was killed.
 */
int gt_ask(const char *const argv[], char *line, size_t size);

/* Runs argv as gt_ask does, but the line may also be one that it prints on standard error. */
int gt_ask_errors(const char *const argv[], char *line, size_t size);
