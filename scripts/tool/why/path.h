/*
 * The critical path: backwards from a moment of a thread, through those who let it go on, what each
 * of them was doing. Its stretches follow each other without gaps and are as long as the interval.
 */
#ifndef GT_WHY_PATH_H
#define GT_WHY_PATH_H

#include "cpus.h"
#include "sections.h"

struct gt_path_row {
    uint32_t section;
    uint64_t ns, count, longest, longest_at; /* longest_at: when that began */
    uint32_t thread;                         /* the first seen */
    uint32_t threads;
    bool alike; /* all of one name */
};

struct gt_path {
    struct gt_path_row *row; /* once finished: the longest first */
    size_t n, room;
    struct gt_memo by_section, threads;
    uint64_t from, to, ns; /* ns: of all rows together; of several intervals more than to - from */
    uint64_t by_kind[GT_KINDS];
    uint64_t *by_thread; /* ns */
    uint64_t *seen;      /* by spot: ns there, also of waits that led it to who ended them */
    struct gt_delays woken,
        preempted; /* without a CPU: after a wait, and in the midst of running */
    uint64_t stretches, hops;
    uint64_t watch;        /* a time, or 0; and on which thread the path is just before: */
    uint32_t watch_thread; /* GT_NOBODY: it does not get there */
};

/* Adds the path from that moment of the thread back to `from`. */
void gt_path_add(struct gt_path *path, struct gt_sections *sections, uint32_t thread, uint64_t from,
                 uint64_t to);

/* It is empty again. */
void gt_path_free(struct gt_path *path);

/* Sorts its rows. */
void gt_path_finish(struct gt_path *path);

/* How long the path is in that section. */
uint64_t gt_path_ns_of(const struct gt_path *path, uint32_t section);

#endif
