/* `gotrace stacks --last=N`: what the flight recorder of a program knows about its threads. */
#pragma once

#include "encoder/read/threads.h"

#include <stdio.h>
#include <sys/types.h>

/*
 * Asks the recorder of the process for all its events. Ends with a message if the process has none.
 */
void gt_recent_read(pid_t pid, unsigned last);

/* Reads a black box: what its threads did last. `last` 0: without their earlier waits and calls. */
const struct gt_threads *gt_recent_read_box(const char *path, unsigned last);

/* When a wait for the lock last ended, in ns; 0: none did. For a black box. */
uint64_t gt_recent_given_up(const struct gt_lock_state *lock);

/*
 * Prints since when the thread has been in its state, and its last waits and calls. Prints nothing
 * if the recorder does not know the thread.
 */
void gt_recent_print(FILE *out, pid_t tid);

/*
 * Adds these facts as a member "recorded"; null if the thread is not known. Without --last no
 * member.
 */
void gt_recent_json(pid_t tid);
