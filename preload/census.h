/*
 * How many processes of a family are recorded, where GOTRACE_MAX_PROCESSES bounds that, and who
 * made them. All of them count in a page that the first one makes: System V shared memory, which
 * has a number, here in the environment, but neither a name nor a descriptor that a program could
 * meet, and goes with the last one that has it. Without a bound there is none, and nothing is done.
 */
#ifndef GT_CENSUS_H
#define GT_CENSUS_H

#include "encoder/origin.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GT_CENSUS_VARIABLE "GOTRACE_FAMILY" /* which page it is */

/*
 * Once, before the process makes others: it counts with its family, or as the first one of a new
 * family, whose page has that mode. Where neither can be, there is no bound. Returns what the
 * variable must say to its descendants, which nothing says yet, or NULL.
 */
const char *gt_census_open(mode_t mode);

/* The process leads a new family that it does not belong to itself. Returns the same. */
const char *gt_census_begin(mode_t mode);

/* Whether there is such a page. */
bool gt_census_is_open(void);

/* Whether this process may be recorded; from then on it counts. The answer stays. */
bool gt_census_admit(void);

/* It becomes another program and has left no trace: that one asks anew. */
void gt_census_withdraw(void);

/* How many were not recorded so far. */
uint32_t gt_census_refused(void);

/*
 * The process is about to become another program, which cannot know who has made the process; the
 * other half is for that one. Of so many processes at a time that a place is seldom another one's.
 */
void gt_census_note_maker(pid_t process, const struct gt_maker *by);
bool gt_census_take_maker(pid_t process, struct gt_maker *by);

/* In a forked child, which has not asked. */
void gt_census_after_fork(void);

#endif
