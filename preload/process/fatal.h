/*
 * Completes the recording, or saves the flight recorder, when a signal is about to end the process.
 *
 * Our handler is installed only for signals for which the program has the default action. The
 * handler writes the file; then the default action takes place with the same exit status, the same
 * core, and the fault at the same instruction. The program reads and sets its signal actions as if
 * our handler did not exist.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Installs the handlers: in the constructor if there is a flight recorder, else when a recording
 * begins. save: completes the recording; it runs on a stack of our own, once. */
void gt_fatal_init(void (*save)(void));

/* Restores the default actions for good, in children too. Called before the program installs a
 * seccomp filter that refuses system calls of our handler. */
void gt_fatal_forbid(void);

/* Whether `handler` is our handler, which must look like SIG_DFL to the program. */
bool gt_fatal_is_ours(sighandler_t handler);

/* Whether the thread is the one that completes the recording: the signal interrupted it for good,
 * and it never returns to the call that it was in. Any context. */
bool gt_fatal_has_ended(uint32_t tid);

/* Called in a forked child: the parent may have been dying, the child is not. */
void gt_fatal_after_fork(void);

/* Whether the program's sigaction for this signal must go to gt_fatal_action. */
bool gt_fatal_watches(int number);

/* sigaction(2) for the program: shows it the default action where our handler is installed. */
int gt_fatal_action(int number, const struct sigaction *action, struct sigaction *old);
