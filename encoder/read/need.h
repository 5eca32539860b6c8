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

/* Room for one more of n items, of which there is some for *room: where they are now. */
static inline void *gt_need_room(void *items, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return items;
    *room = *room ? 2 * *room : 16;
    return gt_need(realloc(items, *room * size));
}

#endif
