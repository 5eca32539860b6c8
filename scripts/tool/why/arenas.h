/*
 * Waits for the locks of malloc's arenas. They are inside libc, so no event tells them: threads are
 * off the CPU in no call that is recorded, and CPU samples show their ways into that lock and out.
 */
#pragma once

#include "sections.h"

struct gt_arenas {
    uint64_t threads;         /* that have samples there */
    uint64_t samples, locked; /* CPU samples of these threads: all, and those in such a lock */
    uint64_t unseen_ns;       /* how long these threads waited in no call that is recorded */
    uint64_t at;              /* ns, of the first such sample */
    const char *caller;       /* the function that calls malloc or free in most of them */
};

struct gt_arenas gt_arenas_find(struct gt_sections *sections, uint64_t from, uint64_t to);
