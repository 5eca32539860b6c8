/*
 * A trace in the formats of other tools: what `gotrace export` asks a format for. Each format is a
 * function of its own file that reads the trace and writes the file, and ends the program with a
 * message where it cannot.
 */
#ifndef GT_EXPORT_H
#define GT_EXPORT_H

#include "encoder/read/trace.h"

#include <stdio.h>

struct gt_export {
    struct gt_trace *trace; /* open */
    FILE *file;             /* which ends up whole, or nowhere */
    unsigned kinds;         /* kinds.h; of the formats that take them */
    bool by_thread;         /* stacks begin with their thread's name */
    bool wakers;            /* and go on with who ended the wait */
    bool unended;           /* waits count that last until the trace ends; else: */
    struct gt_left_out {
        uint64_t waits, ns;
    } * left_out;
    const char *other; /* a trace to compare with, or NULL */
};

/* Whether a wait counts in a profile; if not, it is left out. */
bool gt_export_counts(const struct gt_export *x, bool ended, uint64_t ns);

void gt_export_pprof(const struct gt_export *x);
void gt_export_folded(const struct gt_export *x);
void gt_export_flame(const struct gt_export *x);
void gt_export_perfetto(const struct gt_export *x);
void gt_export_firefox(const struct gt_export *x);
void gt_export_chrome(const struct gt_export *x);

#endif
