/* What the recording does before the program gives up rights: by seccomp(2) or Landlock. */
#pragma once

#include <stdbool.h>

/*
 * Opens the files that recording needs, because the calling thread (`all`: every thread) is about
 * to give up access to files. Not inside the guard; errno is kept.
 */
void gt_process_confines(bool all);

/*
 * Waits until the drain thread, if there is one, has finished its current work and has seen all
 * settings made before this call. Gives up after the time that gt_drain_command waits. Not inside
 * the guard; errno is kept.
 */
void gt_process_await_drain(void);

/*
 * gt_process_end for a process that lives on, in which we must make no system calls from here on,
 * and neither in its children. Not inside the guard.
 */
void gt_process_withdraw(void);

/* Stops following forked children and later images (exec) of this process, from here on. */
void gt_process_abandon_children(void);
