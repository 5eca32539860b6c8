/*
 * seccomp(2): ends recording before the program installs a filter that our system calls would not
 * survive.
 *
 * A program writes its filter for its own system calls, not for ours. A filter that answers with an
 * error costs us the end of a trace. A filter that kills would kill the program for a call of ours.
 */
#pragma once

/*
 * Called before the system call that confines the calling thread, with the arguments that
 * seccomp(2) documents. Ends recording, and with it all system calls of ours, if the filter would
 * do more than return an error for one of them. Not inside the guard; errno is kept.
 */
void gt_seccomp_begins(unsigned long operation, unsigned long flags, const void *filter);

/* gt_seccomp_begins for PR_SET_SECCOMP of prctl(2): its modes count from 1, operations from 0. */
void gt_seccomp_begins_prctl(unsigned long mode, const void *filter);
