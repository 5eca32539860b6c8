/* Rewrites a trace, or a part of it, to another file, in any format. */
#pragma once

#include "encoder/format/format.h"

#include <regex.h>

struct gt_rewrite {
    const char *input, *output;
    const struct gt_format *format; /* NULL: the input's */
    uint64_t from, to;              /* ns since the beginning; to: UINT64_MAX: the end */
    bool from_end, to_before_end;   /* `from` or `to` counts back from the end */
    const regex_t *threads;         /* NULL: all; by name, routine or number */
    bool holds;                     /* lock holds become tasks */
    bool thorough;                  /* reads all that is before `from`, however large */
    /* Results: whether a Go program wrote the trace; how many events of experiments it lost. */
    bool of_go;
    uint64_t experimental;
};

/* How long the trace lasts, in ns; of a large file only its ends are read. Ends the program if it
 * cannot be read. */
uint64_t gt_rewrite_length(const char *input);

/* Rewrites the trace. A failure ends the program with a message, and leaves no output. */
void gt_rewrite(struct gt_rewrite *r);

/* Prints how many events of experiments were left out, if any. */
void gt_rewrite_say_experiments(const struct gt_rewrite *r);

/* Whether both paths exist and name one file. */
bool gt_rewrite_is_same(const char *one, const char *other);
