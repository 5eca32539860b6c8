/*
 * Threads that answer each other through descriptors, from the inferred ends of their waits (see
 * handed.h). Of several threads that were active when a wait ended, the thread's usual partner
 * ended it: the other end of a socket, for example.
 */
#pragma once

#include "graph.h"

enum { GT_OUTLIER = 4 }; /* a single wait may end so many times later than most of its place */

/* A wait for a descriptor, and the thread that most likely ended it. */
struct gt_guess {
    uint64_t from, to;
    struct gt_handed giver; /* `at`: when that thread was active last, before the end */
    uint32_t place;
};

/* Those of one thread, in the order of time. */
struct gt_guesses {
    struct gt_guess *at;
    size_t n;
};

/*
 * How far the nearest begin or end of a stretch of the cursor's thread's running is from `at`, in
 * ns. 0: at `at` it was in a call that may end waits of others. A thread that wakes another one
 * often loses its CPU in that call. UINT64_MAX: it has not run since `from`. *until: the last
 * moment at which it could have ended the wait.
 */
uint64_t gt_since_active(struct gt_cursor *c, uint64_t from, uint64_t at, uint64_t *until);

/*
 * Corrects the guesses of each thread. cursor: of each thread. soon: by place, how long before the
 * end of a wait its giver was active.
 */
void gt_partners_find(struct gt_graph *graph, struct gt_cursor *cursor, struct gt_guesses *of,
                      const uint64_t *soon, size_t places);
