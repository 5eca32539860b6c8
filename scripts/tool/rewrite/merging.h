/* Writes several traces as one, on one timeline. */
#pragma once

#include "encoder/format/format.h"

enum { GT_MERGED_MAX = 1000 };

struct gt_merging {
    char **inputs;
    size_t n; /* up to GT_MERGED_MAX */
    const char *output;
    const struct gt_format *format; /* NULL: the first one's */
    const char *mark;               /* see gt_align; or NULL */
};

/* Merges the traces. A failure ends the program with a message, and leaves no output. */
void gt_merging_do(const struct gt_merging *m);
