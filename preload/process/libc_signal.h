/*
 * Shares with libc the signal that libc reserves for itself: libc uses it to run setuid(2) and
 * relatives in all threads. A program can neither block this signal, wait for it nor set its
 * action, and no signal set that libc fills contains it. So our use of it changes nothing for the
 * program, as the use of any other signal would.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#define GT_LIBC_SIGNAL 33 /* SIGSETXID: the second of the kernel's real-time signals */

/*
 * Installs `handler` for the signal, with all other signals blocked while it runs. Called in the
 * constructor, or when there are threads already. false: libc does not reserve the signal.
 */
bool gt_libc_signal_take(void (*handler)(int, siginfo_t *, void *));

/*
 * Reinstalls our handler; called after a thread was made. libc installs its own handler before it
 * makes the first thread, and perhaps in a forked child. Until this function is called, libc's
 * handler receives the signals for ours and drops them.
 */
void gt_libc_signal_retake(void);

/* Passes the signal on to libc's handler. Called in our handler, when the signal was not for us. */
void gt_libc_signal_forward(int number, siginfo_t *info, void *context);
