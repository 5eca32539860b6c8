/*
 * How this process begins to be followed: in the constructor, with its second thread, in a forked
 * child, or when `gotrace attach` loads us.
 */
#pragma once

#include <stdbool.h>

/*
 * Starts the drain thread (and in a forked child the recording) because the program is about to
 * have a second thread. A single-threaded program never gets a thread from us.
 */
void gt_process_second_thread(void);

/*
 * Follows the threads from here on, mute, and starts the drain thread, in a process into which
 * libgotrace was loaded late. The caller is a thread that does not belong to the program. 0 or
 * -errno.
 */
int gt_process_attach(const char *settings);

/* Sets the output pattern of later recordings and restarts their numbering. false: too long. */
bool gt_process_set_output(const char *pattern);

/* Does the constructor's work if a thread is about to be made before our constructor has run. */
void gt_process_start_early(void);

/* Begins to follow a single-threaded process that was not followed. manual: mute. Whether that
 * worked. */
bool gt_process_begin(bool manual);

/* Called in a forked child that is to be followed: the first and the last entry of inherit.c's
 * table. */
void gt_process_after_fork(void);
void gt_process_begin_child(void);
