/* Allocation for readers, which end the program if there is no memory. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* Returns p, which malloc, calloc or realloc returned. Ends the program if there was no memory. */
static inline void *gt_need(void *p)
{
    if (!p) {
        fputs("gotrace: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return p;
}

/* Makes room for one more than n items; *room is how many fit. Returns where the items are now. */
static inline void *gt_need_room(void *items, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return items;
    *room = *room ? 2 * *room : 16;
    return gt_need(realloc(items, *room * size));
}
