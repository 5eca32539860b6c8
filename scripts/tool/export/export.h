/*
 * Writes a trace in the formats of other tools, for `gotrace export`. Each format is a function in
 * its own file, which reads the trace and writes the output. A failure ends the program with a
 * message.
 */
#pragma once

#include "encoder/read/trace.h"

#include <stdio.h>

struct gt_export {
    struct gt_trace *trace; /* open */
    FILE *file;             /* the output, which gets its name only when it is complete */
    unsigned kinds;         /* kinds to show (kinds.h), in formats that take them */
    bool by_thread;         /* stacks begin with their thread's name */
    bool wakers;            /* stacks end with the waker's */
    bool unended;           /* waits count that last until the trace ends; else they are in: */
    struct gt_left_out {
        uint64_t waits, ns;
    } * left_out;
    const char *other; /* a trace to compare with, or NULL */
    double narrowest;  /* flame: boxes of fewer pixels are left out */
};

void gt_export_pprof(const struct gt_export *x);
void gt_export_folded(const struct gt_export *x);
void gt_export_flame(const struct gt_export *x);
void gt_export_perfetto(const struct gt_export *x);
void gt_export_firefox(const struct gt_export *x);
void gt_export_chrome(const struct gt_export *x);
