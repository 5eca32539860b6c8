/* A trace, or a part of it, written anew to another file, in any format. */
#ifndef GT_REWRITE_H
#define GT_REWRITE_H

#include "encoder/read/trace.h"

#include <regex.h>

struct gt_rewrite {
    const char *input, *output;
    const struct gt_format *format; /* NULL: the input's */
    uint64_t from, to;              /* ns since the beginning; to: UINT64_MAX: the end */
    bool from_end, to_before_end;   /* these are counted back from the end */
    const regex_t *threads;         /* NULL: all; by name, routine or number */
    bool holds;                     /* of locks become tasks */
    bool thorough;                  /* reads all that is before `from`, however large */
    /* Set: whether the trace is by a Go program; its experiments' events, which are left out. */
    bool of_go;
    uint64_t experimental;
};

/* How long the trace lasts, in ns; of a large file only its ends are read. Ends the program if it
 * cannot be read. */
uint64_t gt_rewrite_length(const char *input);

/* Does it; a failure ends the program with a message, and leaves no output. */
void gt_rewrite(struct gt_rewrite *r);

/* That events of experiments were left out, if so. */
void gt_rewrite_say_experiments(const struct gt_rewrite *r);

/* Whether both are there, and one file. */
bool gt_rewrite_is_same(const char *one, const char *other);

#endif
