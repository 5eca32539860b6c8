/*
 * Checks, before a program runs, whether libgotrace.so can be preloaded to it. The loader says
 * nothing when it ignores LD_PRELOAD, so there would just be no trace.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct gt_target {
    bool runs;                /* whether execvp would find a program */
    int status;               /* 0: the program can be traced; else the exit status for the error */
    char why[2 * PATH_MAX];   /* if status: the reason, as a sentence */
    char mend[PATH_MAX + 64]; /* if status: what to type or to do about it; "": nothing known */
    char file[PATH_MAX];      /* the ELF file that runs; of a script, its interpreter's; "": not
                               * known, as a file that may run but not be read */
    bool script;              /* it is an interpreter's */
    char absent[NAME_MAX + 1]; /* a program that env(1) would run, and does not find; "": none */
    char first[NAME_MAX + 1];  /* a library that has to be preloaded before ours; "": none */
};

/* Finds the file that a shell would run for this name, as path; 0, or an errno. */
int gt_target_find(const char *name, char path[PATH_MAX]);

/* Maps a regular file that is not empty, for good. false: it cannot be read. */
bool gt_target_map(const char *path, const void **base, size_t *size);

/*
 * Looks at the file that execvp(program) would run, and at interpreters of scripts. library: the
 * path of libgotrace.so, whose architecture the program must have.
 */
void gt_target_look(struct gt_target *target, const char *program, const char *library);
