/*
 * Counts the recorded processes of a family where GOTRACE_MAX_PROCESSES limits them, and notes
 * which thread made each process.
 *
 * The counters stand in a page that the first process of the family makes and all others attach.
 * The page is System V shared memory: it has a number, which is passed in the environment, but
 * neither a name nor a descriptor that a program could come across. The kernel removes it with the
 * last process that has it attached. Without GOTRACE_MAX_PROCESSES there is no page, and the
 * functions do nothing.
 */
#pragma once

#include "encoder/format/origin.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GT_CENSUS_VARIABLE "GOTRACE_FAMILY" /* the page's number, for descendants */

/*
 * Attaches the page of the process's family, or makes the page of a new family with permissions
 * `mode`. If neither works, the number of processes has no limit. Called once, before the process
 * makes others. Returns the value that the caller must give GT_CENSUS_VARIABLE for its descendants;
 * NULL if the variable has it already or there is no page.
 */
const char *gt_census_open(mode_t mode);

/*
 * Makes the page of a new family to which the calling process does not belong itself, as
 * the gotrace command does. Returns the value for GT_CENSUS_VARIABLE, or NULL.
 */
const char *gt_census_begin(mode_t mode);

/* Whether the process has a page attached. */
bool gt_census_is_open(void);

/* Whether this process may be recorded. The first call counts the process; later calls repeat its
 * answer. */
bool gt_census_admit(void);

/* Takes the process out of the count. Called before an exec by a process that has left no trace:
 * the new program image asks again. */
void gt_census_withdraw(void);

/* The number of processes that were refused so far. */
uint32_t gt_census_refused(void);

/*
 * Pass the maker of a process over exec(2), since the new program image cannot know which thread
 * made the process. gt_census_note_maker stores it before the exec, gt_census_take_maker fetches it
 * in the new image. Processes share the places by their number; there are so many places that two
 * processes seldom need the same one at a time.
 */
void gt_census_note_maker(pid_t process, const struct gt_maker *by);
bool gt_census_take_maker(pid_t process, struct gt_maker *by);

/* Called in a forked child: it has not asked gt_census_admit yet. */
void gt_census_after_fork(void);
