/* `--kind=sync,network`: which kinds of waits a command is about. */
#ifndef GT_KINDS_H
#define GT_KINDS_H

#include "encoder/read/shares.h"

/* A bit each. Otherwise a command is about the usual ones; the CPU alone is about no waits. */
enum {
    GT_KINDS_USUAL = 1u << GT_SCHED | 1u << GT_SYNC | 1u << GT_NETWORK | 1u << GT_SYSCALL,
    GT_KINDS_CPU = 1u << GT_RUNNING,
    GT_KINDS_SCHED = 1u << GT_SCHED
};

/* What the option of that command says; ends the program if that is nothing. text is changed. */
unsigned gt_read_kinds(const char *command, char *text);

#endif
