/* The first lines of the page: what limits the run, where, and what a change there would give. */
#pragma once

#include "page.h"

#include <stdio.h>

/*
 * Prints the answer for a run whose end somebody waits for. It is not printed if the first finding
 * says it: findings about CPUs do so only if a CPU is what would help most. Returns whether it is.
 */
bool gt_answer_print(FILE *out, const struct gt_why *why);

/* Prints since when the program stood still, and which threads wait for what; or nothing. */
void gt_answer_print_standstill(FILE *out, struct gt_why *why);

/* Prints the commands that show more about threads that no longer go on. */
void gt_answer_print_next(FILE *out, const struct gt_why *why);

/* "If nobody ever waited for it, the run would take 66 % less: 173.8ms."; "": no change helps. */
const char *gt_answer_change(const struct gt_why *why, const struct gt_finding *finding);
