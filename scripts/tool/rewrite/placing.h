/*
 * Where code is shown in a trace that is put together of several: each process has its own at any
 * address, but within a trace an address means one thing. A module that was loaded where another
 * one was is shown elsewhere, as one that took another's place in a process is
 * (symbolize/modules.h).
 */
#ifndef GT_PLACING_H
#define GT_PLACING_H

#include <stddef.h>
#include <stdint.h>

/* A module that a trace tells of. */
struct gt_placed {
    uint64_t lo, hi;         /* there */
    uint64_t away;           /* added to that: where it is shown */
    const char *description; /* as gt_modules_describe, of where it is shown */
};

/* Those of a trace. */
struct gt_placing {
    struct gt_placed *at;
    size_t n, room;
};

/* Another one, or the same again. The text is copied; none that is no description is kept. */
void gt_placing_add(struct gt_placing *placing, const char *description);

/* The one of the address, which was added last; NULL: there is none. */
const struct gt_placed *gt_placing_find(const struct gt_placing *placing, uint64_t pc);

/* What is known of a trace; where its modules are shown nothing else will be. */
void gt_placing_free(struct gt_placing *placing);

#endif
