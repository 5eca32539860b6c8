/* Several traces written as one, on one timeline. */
#ifndef GT_MERGING_H
#define GT_MERGING_H

#include "encoder/format.h"

enum { GT_MERGED_MAX = 1000 };

struct gt_merging {
    char **inputs;
    size_t n; /* up to GT_MERGED_MAX */
    const char *output;
    const struct gt_format *format; /* NULL: the first one's */
    const char *mark;               /* see gt_align; or NULL */
};

/* Does it; a failure ends the program with a message, and leaves no output. */
void gt_merging_do(const struct gt_merging *m);

#endif
