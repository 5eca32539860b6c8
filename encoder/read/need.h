/* Memory that a reader cannot do without. */
#ifndef GT_NEED_H
#define GT_NEED_H

#include <stdio.h>
#include <stdlib.h>

/* What malloc, calloc or realloc returned; ends the program when there was no memory. */
static inline void *gt_need(void *p)
{
    if (!p) {
        fputs("gotrace: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return p;
}

#endif
