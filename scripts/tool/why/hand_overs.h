/*
 * Hand-overs on the critical path: a thread that waited for another one, by a lock, a condition
 * variable or a semaphore, was woken and had to get a CPU before it went on.
 */
#pragma once

#include "critical_path.h"

struct gt_hand_overs {
    uint64_t n, ns;      /* ns: until the woken threads had a CPU */
    uint64_t given;      /* of n: by a condition variable or a semaphore, as of a queue */
    uint64_t work;       /* ns of computing on the path */
    uint64_t elsewhere;  /* ns of the path that are neither: calls, sleeps, input */
    uint32_t section;    /* the longest of these delays; or GT_NOBODY */
    uint64_t longest_at; /* when the longest one there began */
};

struct gt_hand_overs gt_hand_overs_on(const struct gt_critical_path *path,
                                      const struct gt_sections *sections);
