/*
 * Whether libgotrace.so can be preloaded to a program, found out before it runs: the loader says
 * nothing when it ignores LD_PRELOAD, and there would just be no trace.
 */
#ifndef GT_TARGET_H
#define GT_TARGET_H

#include <limits.h>
#include <stdbool.h>

struct gt_target {
    bool runs;                /* whether execvp would find something to run */
    int status;               /* 0: it can be traced; else the exit status that says it cannot */
    char why[2 * PATH_MAX];   /* then: a sentence */
    char first[NAME_MAX + 1]; /* a library that has to be preloaded before ours; "": none */
};

/*
 * Looks at what execvp(program) would run, with the interpreters of scripts. library: the path of
 * libgotrace.so, whose architecture counts.
 */
void gt_target_look(struct gt_target *target, const char *program, const char *library);

#endif
