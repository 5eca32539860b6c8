/*
 * seccomp(2): a filter that a program confines itself by was made for the system calls that the
 * program makes, not for ours. One that answers with an error costs us the end of a trace; one that
 * kills would kill the program for what we do. Recording ends before such a filter is there.
 */
#ifndef GT_SECCOMP_H
#define GT_SECCOMP_H

/*
 * Before the system call that confines the calling thread, with the arguments that seccomp(2)
 * documents. Ends recording, and with it all system calls of ours, where they would be answered
 * with more than an error. Not inside the guard; errno is kept.
 */
void gt_seccomp_begins(unsigned long operation, unsigned long flags, const void *filter);

/* The same for PR_SET_SECCOMP of prctl(2), whose modes count from 1, the operations from 0. */
void gt_seccomp_begins_prctl(unsigned long mode, const void *filter);

#endif
