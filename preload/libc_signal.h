/*
 * The signal that libc keeps for itself, shared with libc: it has setuid(2) and relatives done in
 * all threads by it. No program can block it, wait for it, or choose its action, and no set that
 * libc fills has it. What another one of ours would change for a program, this one does not.
 */
#ifndef GT_LIBC_SIGNAL_H
#define GT_LIBC_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

#define GT_LIBC_SIGNAL 33 /* SIGSETXID: the second of the kernel's real-time signals */

/*
 * Constructor, or when there are threads: `handler` gets it, all others blocked. false: libc does
 * not keep it to itself.
 */
bool gt_libc_signal_take(void (*handler)(int, siginfo_t *, void *));

/*
 * A thread was made: libc sets its own handler before the first one, and may do so in a forked
 * child. Until this is called, that one gets what is sent to ours, and drops it.
 */
void gt_libc_signal_retake(void);

/* In the handler: this one was not for us. */
void gt_libc_signal_forward(int number, siginfo_t *info, void *context);

#endif
