/* `--kind=sync,network`: the kinds of waits that a command reports. */
#pragma once

#include "encoder/read/shares.h"

/* One bit for each kind. GT_KINDS_USUAL is the default. GT_KINDS_CPU asks for no waits at all. */
enum {
    GT_KINDS_USUAL = 1u << GT_SCHED | 1u << GT_SYNC | 1u << GT_NETWORK | 1u << GT_SYSCALL,
    GT_KINDS_CPU = 1u << GT_RUNNING,
    GT_KINDS_SCHED = 1u << GT_SCHED
};

/*
 * Reads the value of --kind, and changes `text`. Ends the program with a message if it names no
 * kind.
 */
unsigned gt_read_kinds(const char *command, char *text);
